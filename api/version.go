package api

import (
	"cmp"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Set by the build (tools/version); a program that was built in another way asks what Go recorded.
var version, commit, date string

// VersionShow says which program the server is.
var VersionShow = op[Nothing, Build](Operation{
	Name: "version.show", Method: http.MethodGet, Path: "/version", Permission: fleet.Self, Kind: Question,
	Summary: "Say which version of Tutti the server is",
})

func versionOperations() []Operation { return listed(VersionShow) }

// Build is what a program was made of.
type Build struct {
	Version  string `json:"version"`          // 0.1.0; 0.1.0+5.g1234567 is five commits later; devel: no version is known
	Commit   string `json:"commit,omitempty"` // of the source; empty: not known
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339 in UTC
	Go       string `json:"go"`
	Platform string `json:"platform"` // linux/amd64
}

// ProgramBuild is what this program was made of.
func ProgramBuild() Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && b.Version == "" {
		b.Version = strings.TrimPrefix(info.Main.Version, "v")
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				b.Commit = setting.Value
			case "vcs.time":
				b.Date = setting.Value
			}
		}
	}
	b.Version = cmp.Or(b.Version, "devel")
	if b.Version == "(devel)" {
		b.Version = "devel"
	}
	return b
}

// String is the version, and the commit as people write it.
func (b Build) String() string {
	if len(b.Commit) >= 12 {
		return b.Version + " " + b.Commit[:12]
	}
	return b.Version
}

// ProgramVersion is the version of this program with its commit, as the build recorded them.
func ProgramVersion() string { return ProgramBuild().String() }
