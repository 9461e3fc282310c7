"""HTML for notebooks and pages: escaped tables and inline pictures. Standard library only."""
