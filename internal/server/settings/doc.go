// Package settings is every setting of a server: its name, default and help, what it may be, and what it means.
//
// A Config comes from a file, variables and flags; reading them is the command line's. Check refuses what no server could
// work with, and names the setting. Methods of Config turn settings into what other packages take: engines, grants of
// cells, networks, the place of records and content. Nothing here opens, starts or keeps anything.
package settings
