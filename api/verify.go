package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Catalogs compared with what plain Puppet gives.
var (
	CompileVerify = op[CompileVerifyRequest, Verification](Operation{
		Name: "compile.verify", Method: http.MethodPost, Path: "/compile/verify", Permission: fleet.CompileRun, Kind: Act,
		Summary: "Have plain Puppet compile a node's catalog in a process of its own, and compare",
	})
	CompileSample = op[CompileSampleRequest, List[string]](Operation{
		Name: "compile.sample", Method: http.MethodGet, Path: "/compile/sample", Permission: fleet.CatalogRead, Kind: Question,
		Summary: "List nodes of an environment that stand for the sets of classes which most nodes have",
	})
	CompileVerified = op[CompileVerifiedRequest, List[Verification]](Operation{
		Name: "compile.verified", Method: http.MethodGet, Path: "/compile/verifications",
		Permission: fleet.CatalogRead, Kind: Question,
		Summary: "List catalogs that were compared with what plain Puppet gives, the latest first",
	})
)

// CompileVerifyRequest names the node whose catalog is verified. It takes what a compile takes, or longer: one is verified at a time.
type CompileVerifyRequest struct {
	Node    string `json:"node"`
	Version string `json:"version,omitempty"` // of its environment's code, or the beginning of its digest; empty: the current one
}

// CompileSampleRequest says of which environment, and how many.
type CompileSampleRequest struct {
	Environment string `query:"environment"`
	Sample      int    `query:"sample"` // at most 1000
}

// CompileVerifiedRequest picks verifications.
type CompileVerifiedRequest struct {
	Node        string `query:"node"`
	Environment string `query:"environment"`
	Version     string `query:"version"` // whole
	Outcome     string `query:"outcome"` // same, differs, not-comparable, failed
	After       string `query:"after"`
	Limit       int    `query:"limit"`
}

// Verification is a catalog, compared with what plain Puppet gives for the same order.
type Verification struct {
	ID          int64              `json:"id"`
	Node        string             `json:"node"`
	Environment string             `json:"environment"`
	Version     string             `json:"version"`
	Catalog     string             `json:"catalog,omitempty"` // its digest; none: the compilation failed, and its error is compared
	Outcome     string             `json:"outcome"`           // same, differs, not-comparable, failed
	Cause       string             `json:"cause"`             // hand, deploy, sample
	Reason      string             `json:"reason,omitempty"`  // why nothing was compared
	Differences []VerifyDifference `json:"differences"`       // the first of them
	Count       int                `json:"count"`             // how many there are
	WallMillis  int64              `json:"wall_ms"`           // that plain Puppet took
	At          time.Time          `json:"at"`
}

// VerifyDifference is one place where a catalog is not what plain Puppet gives. What is sensitive is hidden.
type VerifyDifference struct {
	Resource string `json:"resource,omitempty"` // Type[title], @@Type[title] if exported; none: the catalog itself
	What     string `json:"what"`
	Tutti    string `json:"tutti,omitempty"`
	Plain    string `json:"plain,omitempty"`
}

// CodeVerified is how the catalogs of a version stand to plain Puppet.
type CodeVerified struct {
	Same          int      `json:"same"`
	Differs       int      `json:"differs"` // an alarm: no catalog of the version is used again
	NotComparable int      `json:"not_comparable"`
	Failed        int      `json:"failed"`
	Nodes         []string `json:"nodes,omitempty"` // some of those that differ
}
