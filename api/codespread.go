package api

import "time"

// CodeSpread is which versions of an environment's code the nodes of each group may have.
type CodeSpread struct {
	Environment string `json:"environment"`
	// Versions is the current one and others that nodes may have, at most 8: first those that were never deployed, then newest first.
	Versions []SpreadVersion `json:"versions"`
	Groups   []SpreadGroup   `json:"groups"` // parents before their children; those without a node of the environment are left out
}

// SpreadVersion is a version that nodes may have.
type SpreadVersion struct {
	ID         string     `json:"id"`
	Commit     string     `json:"commit,omitempty"`
	DeployedAt *time.Time `json:"deployed_at,omitempty"` // last; missing: it was not deployed, but released from a preview
	Current    bool       `json:"current,omitempty"`
}

// SpreadGroup is a group with its nodes of the environment. Counts, Other and None add up to Nodes.
type SpreadGroup struct {
	Group  string `json:"group"`
	Depth  int    `json:"depth"`
	Nodes  int    `json:"nodes"`
	Counts []int  `json:"counts"` // by version, in the order of Versions
	Other  int    `json:"other"`  // of versions that are not in Versions
	None   int    `json:"none"`   // may have no catalog of the environment
}
