package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Noise: rules that hide changes of previews which nobody needs to look at.
var (
	NoiseList = op[Nothing, List[NoiseRule]](Operation{
		Name: "noise.list", Method: http.MethodGet, Path: "/noise", Permission: fleet.PreviewRead, Kind: Question,
		Summary: "List the noise rules, which hide changes of previews",
	})
	NoiseSet = op[NoiseSetRequest, NoiseRule](Operation{
		Name: "noise.set", Method: http.MethodPut, Path: "/noise/{rule}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Make a noise rule, or its next version",
	})
	NoiseRemove = op[NoiseRequest, NoiseRule](Operation{
		Name: "noise.remove", Method: http.MethodDelete, Path: "/noise/{rule}", Permission: fleet.PolicyWrite, Kind: Act,
		Summary: "Remove a noise rule; its versions stay",
	})
	NoiseHistory = op[NoiseRequest, List[NoiseRule]](Operation{
		Name: "noise.history", Method: http.MethodGet, Path: "/noise/{rule}/history", Permission: fleet.PreviewRead, Kind: Question,
		Summary: "List every version of a noise rule, newest first",
	})
	NoiseSuggest = op[NoiseSuggestRequest, List[NoiseSuggestion]](Operation{
		Name: "noise.suggest", Method: http.MethodGet, Path: "/environments/{environment}/noise/suggestions",
		Permission: fleet.PreviewRead, Kind: Question,
		Summary: "Suggest noise rules for changes that were acknowledged again and again",
	})
)

// Noise says which changes are hidden: those for which all that is said holds. In patterns * is any text.
type Noise struct {
	Environments []string `json:"environments,omitempty"` // none: all
	Change       string   `json:"change,omitempty"`       // added, removed, changed, node or edge
	Type         string   `json:"type,omitempty"`         // pattern
	Title        string   `json:"title,omitempty"`        // pattern
	Parameters   []string `json:"parameters,omitempty"`   // patterns: nothing but these changes
	Nodes        string   `json:"nodes,omitempty"`        // PQL: every node that has the change is one of these
	Why          string   `json:"why,omitempty"`
}

// NoiseRule is a version of a rule.
type NoiseRule struct {
	Name    string    `json:"name"`
	Version int       `json:"version"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Removed bool      `json:"removed,omitempty"`
	Noise
}

// NoiseSetRequest says what a rule hides from now on.
type NoiseSetRequest struct {
	Rule  string `path:"rule"`
	Noise Noise  `json:"noise"`
}

// NoiseRequest names a rule.
type NoiseRequest struct {
	Rule string `path:"rule"`
}

// NoiseSuggestRequest asks for suggestions.
type NoiseSuggestRequest struct {
	Environment string `path:"environment"`
	Least       int    `query:"least"` // previews in which such a change was acknowledged; default 3
}

// NoiseSuggestion is a rule that somebody might want.
type NoiseSuggestion struct {
	Name     string   `json:"name"`
	Previews int      `json:"previews"` // in which such a change was acknowledged
	People   []string `json:"people"`
	Titles   []string `json:"titles"` // the first ones
	Noise    Noise    `json:"noise"`
}

// noiseOperations is the operations of this file, in the order of the reference.
func noiseOperations() []Operation {
	return listed(NoiseList, NoiseSet, NoiseRemove, NoiseHistory, NoiseSuggest)
}
