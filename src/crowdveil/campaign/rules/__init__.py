"""Rules of campaigns: documents, reports and tokens, as devices and services read them."""
