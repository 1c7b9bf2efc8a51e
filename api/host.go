package api

// DataDir is where a server keeps everything if it is not told otherwise.
const DataDir = "/var/lib/tutti"

// Files of a server's data directory that commands on the same machine read.
const (
	TokenFile   = "admin.token"
	AddressFile = "address"
	CAFile      = "ca/ca_crt.pem"
)
