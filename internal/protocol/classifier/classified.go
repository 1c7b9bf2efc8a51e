package classifier

import (
	"encoding/json"
	"net/http"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// classification is what a node gets.
type classification struct {
	Name        fleet.Certname   `json:"name"`
	Groups      []classify.ID    `json:"groups"`
	Environment string           `json:"environment"`
	Classes     classify.Classes `json:"classes"`
	Parameters  classify.Values  `json:"parameters"`
	ConfigData  classify.Classes `json:"config_data"`
}

// classifyNode says what a node with the given facts and trusted data gets; without
// either, what the node gets that is known by that name.
func (h *Handler) classifyNode(w http.ResponseWriter, r *http.Request) error {
	name, err := fleet.ParseCertname(r.PathValue("name"))
	if err != nil {
		return bad("schema-violation", map[string]string{"submitted": r.PathValue("name")}, "%s", fault.Detail(err))
	}
	var given struct {
		Fact    json.RawMessage `json:"fact"`
		Trusted json.RawMessage `json:"trusted"`
	}
	if err := body(w, r, maxHierarchy, &given); err != nil {
		return err
	}
	if given.Fact == nil && given.Trusted == nil {
		if given.Fact, given.Trusted, err = h.Fleet.Known(r.Context(), name); err != nil {
			return err
		}
	}
	node, err := classify.NewNode(name, given.Fact, given.Trusted)
	if err != nil {
		return err
	}
	groups, _, err := h.Groups.Groups(r.Context())
	if err != nil {
		return err
	}
	result := classify.Classify(groups, node)
	if len(result.Conflicts) > 0 {
		return conflict(name, groups, result.Conflicts)
	}
	answer := classification{
		Name: name, Groups: append([]classify.ID{}, result.Groups...), Environment: result.Environment,
		Classes: orNone(result.Classes), Parameters: result.Parameters, ConfigData: orNone(result.Data),
	}
	if answer.Environment == "" {
		answer.Environment = classify.AgentSpecified
	}
	write(w, http.StatusOK, answer)
	return nil
}

// disputed is one value of a conflict.
type disputed struct {
	Value     json.RawMessage `json:"value"`
	From      wireGroup       `json:"from"`       // the leaf that it reaches the node through
	DefinedBy wireGroup       `json:"defined_by"` // the group that it is written in
}

// conflict tells what groups disagree about.
func conflict(name fleet.Certname, groups []classify.Group, conflicts []classify.Conflict) error {
	all := familyOf(groups)
	variables, classes, data := map[string][]disputed{}, map[string]map[string][]disputed{}, map[string]map[string][]disputed{}
	details := map[string]any{}
	for _, c := range conflicts {
		values := all.disputed(c)
		switch c.Item.Kind {
		case classify.Environment:
			details["environment"] = values
		case classify.Variable:
			variables[c.Item.Name] = values
			details["variables"] = variables
		case classify.Parameter, classify.Class:
			put(classes, c.Item, values)
			details["classes"] = classes
		case classify.Data:
			put(data, c.Item, values)
			details["config_data"] = data
		}
	}
	return bad("classification-conflict", details, "the groups of %s give different values; `tutti group explain %s` shows which", name, name)
}

func put(into map[string]map[string][]disputed, item classify.Item, values []disputed) {
	if into[item.Class] == nil {
		into[item.Class] = map[string][]disputed{}
	}
	into[item.Class][item.Name] = values
}

func (f family) disputed(c classify.Conflict) []disputed {
	var values []disputed
	for _, o := range c.Origins {
		for _, leaf := range o.Via {
			values = append(values, disputed{Value: o.Value, From: f.wire(f[leaf]), DefinedBy: f.wire(f[o.Group])})
		}
	}
	return values
}
