-- expand: older programs leave it 0, which says that nothing is known.
-- The newest schema that the program of a server knows: who changes the records sees whom that concerns.
ALTER TABLE servers ADD COLUMN schema @int NOT NULL DEFAULT 0;
