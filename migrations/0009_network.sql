-- What a run did with the network, where it had one: connections, bytes each way, and what it did not reach.
ALTER TABLE runs ADD COLUMN network TEXT CHECK (network IS NULL OR json_valid(network));
