//! Where a run happens: environment → sandbox → process. Knows nothing of tools, callers or the store.
