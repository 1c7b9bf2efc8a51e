// Package datadir is the directory that holds everything a server keeps: who may use it, its small files, its disk.
//
// One process at a time holds the directory, by a lock that ends with the process. Small files are replaced whole. A Disk
// watches the file system and refuses writes while it is full, with enough in reserve that a server can start and serve.
// A Seal encrypts secrets with a key that lies in the directory.
package datadir
