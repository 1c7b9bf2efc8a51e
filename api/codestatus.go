package api

import "time"

// CodeStatus is how the nodes of an environment stand to its current version. A node
// whose code does not compile keeps its last good catalog.
type CodeStatus struct {
	Environment string      `json:"environment"`
	Version     string      `json:"version"`
	DeployedAt  time.Time   `json:"deployed_at"`
	Nodes       int         `json:"nodes"`
	Current     int         `json:"current"`            // their catalogs stand for the version
	Waiting     int         `json:"waiting"`            // their catalogs are wanted, or being compiled
	Failed      int         `json:"failed"`             // they keep their last good catalog, if they have one
	NoCatalog   int         `json:"no_catalog"`         // of the failed, those that never had one
	Unknown     int         `json:"unknown"`            // nothing was tried, as when no facts are known
	Held        int         `json:"held"`               // their newest catalog lost its resources: they keep the one before until somebody lets it go
	Warned      int         `json:"warned"`             // their catalog lost most of its resources and was given
	NoFacts     *CodeNodes  `json:"no_facts,omitempty"` // of the unknown, those that sent no facts: nothing can be compiled for them
	Untried     *CodeNodes  `json:"untried,omitempty"`  // of the unknown, the others: the server has not come to them yet
	Losses      []string    `json:"losses,omitempty"`   // what the first of both are told
	Errors      []CodeError `json:"errors"`             // those that hit most nodes first

	Slowed *CompileSlowed `json:"slowed,omitempty"` // its catalogs take too long again and again

	Verified *CodeVerified `json:"verified,omitempty"` // how catalogs stand to what plain Puppet gives; none was compared
	Check    *CodeCheck    `json:"check,omitempty"`    // what was found in the version before it was deployed; missing: it was not checked
}

// CodeNodes are nodes of which the same is to be said.
type CodeNodes struct {
	Nodes int      `json:"nodes"`
	Names []string `json:"names"` // of some of them
}

// CodeError is a mistake in code, and whom it hits.
type CodeError struct {
	Cause   string   `json:"cause"`
	Message string   `json:"message"` // where it names the node, NODE stands for it
	File    string   `json:"file,omitempty"`
	Line    int      `json:"line,omitempty"`
	Nodes   int      `json:"nodes"`
	Names   []string `json:"names"` // of some of them
}
