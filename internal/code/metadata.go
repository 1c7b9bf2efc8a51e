package code

import (
	"github.com/tutti-project/tutti/internal/fault"
)

// Metadata is what the Puppet API tells of one file. It marshals to exactly the
// document that agents read.
type Metadata struct {
	// Path is virtual: agents see where the environment would lie on a classic
	// server, never where it does on this one.
	Path         string   `json:"path"`
	RelativePath *string  `json:"relative_path"` // below Path; nil for a single file
	Links        string   `json:"links"`
	Owner        int      `json:"owner"`
	Group        int      `json:"group"`
	Mode         int      `json:"mode"`
	Checksum     Checksum `json:"checksum"`
	Type         string   `json:"type"` // file, directory or link
	Destination  *string  `json:"destination"`
	ContentURI   string   `json:"content_uri,omitempty"` // only when inlined in a catalog
	Source       string   `json:"source,omitempty"`      // only when inlined in a catalog
}

// Checksum is a checksum as Puppet writes it: Value starts with its type in
// braces. It is nil for a link that leads to no file.
type Checksum struct {
	Type  string  `json:"type"`
	Value *string `json:"value"`
}

// MetadataOptions says how files are described. The zero value is what a server
// assumes when a request says nothing.
type MetadataOptions struct {
	Links             string // "manage" (default): describe links; "follow": what they lead to
	ChecksumType      string // default sha256
	SourcePermissions string // "ignore" (default), "use" or "use_when_creating"
}

// SearchOptions says how deep a search goes and what it leaves out.
type SearchOptions struct {
	MetadataOptions

	// Recurse descends into directories; without it a search finds only its root.
	Recurse bool
	// RecurseLimit is the number of levels below the root; 0 means all of them.
	// (A request that says recurselimit=0 wants the root alone: Recurse false.)
	RecurseLimit int
	// Ignore holds patterns (as Ruby's File.fnmatch reads them) for the names of
	// files and directories to leave out.
	Ignore []string
	// MaxFiles refuses a search that finds more; 0 or less means no limit.
	MaxFiles int
}

// The bounds of what one search may ask for.
const (
	maxIgnore        = 100
	maxIgnoreBytes   = 1024
	maxSearchResults = 200_000
)

func (o MetadataOptions) withDefaults() (MetadataOptions, error) {
	switch o.Links {
	case "", "ignore":
		o.Links = manageLinks
	case manageLinks, followLinks:
	default:
		return o, fault.New(fault.Invalid, "links is %.40q, it can be manage or follow", o.Links)
	}
	switch o.SourcePermissions {
	case "", "ignore", "use", "use_when_creating":
	default:
		return o, fault.New(fault.Invalid,
			"source_permissions is %.40q, it can be ignore, use or use_when_creating", o.SourcePermissions)
	}
	if o.ChecksumType == "" {
		o.ChecksumType = sha256Type
	}
	if !KnownChecksum(o.ChecksumType) {
		return o, fault.New(fault.Invalid, "the checksum type %.40q is not known", o.ChecksumType)
	}
	return o, nil
}

func (o SearchOptions) withDefaults() (SearchOptions, error) {
	var err error
	if o.MetadataOptions, err = o.MetadataOptions.withDefaults(); err != nil {
		return o, err
	}
	if len(o.Ignore) > maxIgnore {
		return o, fault.New(fault.Invalid, "%d ignore patterns were given, at most %d are allowed", len(o.Ignore), maxIgnore)
	}
	for _, pattern := range o.Ignore {
		if len(pattern) > maxIgnoreBytes {
			return o, fault.New(fault.Invalid,
				"an ignore pattern has %d bytes, at most %d are allowed", len(pattern), maxIgnoreBytes)
		}
	}
	if o.RecurseLimit < 0 {
		return o, fault.New(fault.Invalid, "recurselimit is %d, it cannot be negative", o.RecurseLimit)
	}
	return o, nil
}

const (
	manageLinks = "manage"
	followLinks = "follow"
)
