"""Release of results to readers: the page of results and the statement of privacy."""
