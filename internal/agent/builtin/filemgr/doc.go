// Package filemgr is the built-in module filemgr: it looks at files and directories, and touches and removes files where the node's owner
// allows it.
//
// # Bounds
//
// A directory is listed up to 1000 entries. status computes checksums of files up to 64 MiB; checksum of any, until its time is over. read gives
// at most 64 KiB.
//
// # What is read
//
// The agent is root, and who may ask its reading actions may be many. read gives only what every user of the node may read: the file, and
// all directories above it, are open to others. Windows has no such modes, and read is refused there.
package filemgr
