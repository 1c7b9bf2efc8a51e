package action

// Problem is a module that a node has and cannot use.
type Problem struct {
	Module string `json:"module"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
