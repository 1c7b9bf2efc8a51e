// Package server connects all parts to a running server. It decides nothing: run.go opens the parts and starts
// them, routes.go is the table of paths and their handlers.
//
// # Life
//
// Run takes the data directory (one server at a time holds its lock), opens the store, the CA, the blobs and
// the compile workers, then listens. When its context ends, the server stops in this order: it takes no new
// connections, open requests finish (shutdown_timeout), leases are returned, workers end, the store closes.
//
// # Files in the data directory (mode 0700)
//
//	lock          held while a server runs
//	address       https://HOST:PORT of the running server, for commands on this machine
//	admin.token   the administrator's token (0600)
//	ca/           key, certificate and revocation list of the CA; the server's own certificate
//	seal.key      the key that secrets of jobs are sealed with
//	tutti.db      records (SQLite), with its log and lock; tutti.db.schema-N: a copy from before a migration
//	blobs/        content by digest
//	trees/        code versions as directories, for the compile workers
//	ruby/         scratch of the compile workers
//
// A backup contains new small files and directories here automatically. internal/store/backup/datadir.go names
// those that a backup leaves out.
package server
