package filter
