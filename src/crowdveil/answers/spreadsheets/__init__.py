"""Workbooks (.xlsx, .xlsm, .ods): their parts, and the sheet that is read or written."""
