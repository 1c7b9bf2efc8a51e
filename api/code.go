package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// The code of environments, and the blobs that it is made of.
var (
	EnvironmentList = op[Nothing, List[Version]](Operation{
		Name: "environment.list", Method: http.MethodGet, Path: "/environments", Permission: fleet.CodeRead, Kind: Question,
		Summary: "List environments and their current versions",
	})
	EnvironmentDelete = op[EnvironmentRequest, Nothing](Operation{
		Name: "environment.delete", Method: http.MethodDelete, Path: "/environments/{environment}",
		Permission: fleet.CodeDeploy, Kind: Act,
		Summary: "Remove an environment; nodes that ask for it are told it is unknown",
	})
	VersionList = op[EnvironmentRequest, List[Version]](Operation{
		Name: "version.list", Method: http.MethodGet, Path: "/environments/{environment}/versions",
		Permission: fleet.CodeRead, Kind: Question,
		Summary: "List what was deployed to an environment, newest first",
	})
	EnvironmentStatus = op[EnvironmentRequest, CodeStatus](Operation{
		Name: "environment.status", Method: http.MethodGet, Path: "/environments/{environment}/status",
		Permission: fleet.CodeRead, Kind: Question,
		Summary: "Say how many nodes have a catalog of an environment's current version, and what keeps the others from it",
	})
	VersionSpread = op[EnvironmentRequest, CodeSpread](Operation{
		Name: "version.spread", Method: http.MethodGet, Path: "/environments/{environment}/spread",
		Permission: fleet.CodeRead, Kind: Question,
		Summary: "Count the nodes of each group by the version of the code that the catalog is of which they may have",
	})
	VersionLines = op[VersionLinesRequest, CodeLines](Operation{
		Name: "version.lines", Method: http.MethodGet, Path: "/environments/{environment}/versions/{version}/lines",
		Permission: fleet.CodeRead, Kind: Question,
		Summary: "Show the lines around a place in a manifest, a template or Ruby code of a version",
	})
	VersionDeploy = op[DeployRequest, Deployed](Operation{
		Name: "version.deploy", Method: http.MethodPost, Path: "/environments/{environment}/versions",
		Permission: fleet.CodeDeploy, Kind: Act,
		Summary: "Check a manifest and make it the environment's current version",
	})
	EngineList = op[Nothing, List[Engine]](Operation{
		Name: "engine.list", Method: http.MethodGet, Path: "/engines", Permission: fleet.CodeRead, Kind: Question,
		Summary: "List the Puppet installations that can compile, the default first",
	})
	BlobMissing = op[BlobMissingRequest, BlobMissingResponse](Operation{
		Name: "blob.missing", Method: http.MethodPost, Path: "/blobs/missing", Permission: fleet.CodeDeploy, Kind: Question,
		Summary: "Say which of the given digests are not stored",
	})
	BlobUpload = upload[BlobUploadResponse](Operation{
		Name: "blob.upload", Method: http.MethodPost, Path: "/blobs",
		Permission: fleet.CodeDeploy, Kind: Act, Media: "application/x-tar",
		Summary: "Store blobs: a tar archive whose entries are named by their digests",
	})
)

// codeOperations is the operations of this file, in the order of the reference.
func codeOperations() []Operation {
	return listed(
		EnvironmentList, EnvironmentDelete, VersionList, EnvironmentStatus, VersionSpread, VersionLines, VersionDeploy, EngineList, BlobMissing, BlobUpload,
	)
}

// EnvironmentRequest names an environment.
type EnvironmentRequest struct {
	Environment string `path:"environment"`
}

// VersionLinesRequest asks for lines of a file of a version.
type VersionLinesRequest struct {
	Environment string `path:"environment"`
	Version     string `path:"version"` // its id, or its first digits; current: the one that the environment has
	File        string `query:"file"`   // below the environment's root, or as nodes are told it: /etc/puppetlabs/code/environments/ENVIRONMENT/...
	Line        int    `query:"line"`   // from 1
	Around      int    `query:"around"` // so many lines before and behind it, at most 50; 0: 5
}

// CodeLines is some lines of a file of a version.
type CodeLines struct {
	Environment string   `json:"environment"`
	Version     string   `json:"version"`
	File        string   `json:"file"`  // below the environment's root
	Line        int      `json:"line"`  // that was asked for
	From        int      `json:"from"`  // the number of the first of the lines
	Lines       []string `json:"lines"` // without their ends; what is longer than 400 characters is cut, with … at the end
	Last        int      `json:"last"`  // the number of the file's last line
}

// Version is one deployed state of an environment's code.
type Version struct {
	Environment string    `json:"environment"`
	ID          string    `json:"id"`
	Commit      string    `json:"commit,omitempty"`
	Origin      string    `json:"origin,omitempty"`
	Actor       string    `json:"actor,omitempty"`
	Files       int       `json:"files"`
	Bytes       int64     `json:"bytes"`
	Engine      string    `json:"engine,omitempty"` // that compiles it; empty: the server's default
	DeployedAt  time.Time `json:"deployed_at"`
}

// Engine is a Puppet installation that can compile, on the server that answers.
type Engine struct {
	Name         string   `json:"name"`
	Default      bool     `json:"default"`               // of versions that name none
	Puppet       string   `json:"puppet,omitempty"`      // its version; empty: it cannot be used
	By           string   `json:"by,omitempty"`          // whose Puppet it is: puppet or openvox
	Ruby         string   `json:"ruby,omitempty"`        // its version
	JIT          bool     `json:"jit"`                   // whether Ruby's just-in-time compiler is on
	Interpreter  string   `json:"interpreter,omitempty"` // empty: there is no engine of this name on the server
	Gems         []string `json:"gems,omitempty"`
	Trouble      string   `json:"trouble,omitempty"` // why it cannot be used
	Environments []string `json:"environments"`      // whose current version it compiles, of those that who asks may see
}

// DeployRequest makes a manifest an environment's version. All its blobs must
// be stored already: see blob.missing and blob.upload.
type DeployRequest struct {
	Environment string          `path:"environment"`
	Commit      string          `json:"commit,omitempty"`
	Origin      string          `json:"origin,omitempty"`
	Manifest    json.RawMessage `json:"manifest"`

	// Code with mistakes is a conflict, whose body has the check. force: it is deployed nevertheless; off: no mistakes are looked for.
	Check string `json:"check,omitempty"`
}

// BlobMissingRequest names at most 10 000 digests.
type BlobMissingRequest struct {
	Digests []string `json:"digests"`
}

// BlobMissingResponse names those that are not stored.
type BlobMissingResponse struct {
	Missing []string `json:"missing"`
}

// BlobUploadResponse counts what was stored.
type BlobUploadResponse struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}
