package rbacapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
	"github.com/tutti-project/tutti/internal/rbac"
)

// instances is what the instance of a permission names.
type instances int

const (
	allOnly      instances = iota // always *
	environments                  // a name, or a pattern with *
	tasks
	actions
)

// word is a permission in the words of the service.
type word struct {
	object, action string
	means          fleet.Permission
	of             instances
}

// pewords are the permissions that have a word there. Several words for one of Tutti's permissions are given and taken together.
var pewords = []word{
	{object: "orchestrator", action: "view", means: fleet.JobRead},
	{object: "puppet_agent", action: "run", means: fleet.PuppetRun},
	{object: "tasks", action: "run", means: fleet.TaskRun, of: tasks},
	{object: "nodes", action: "view_data", means: fleet.QueryRun},
	{object: "node_groups", action: "view", means: fleet.GroupRead},
	{object: "node_groups", action: "modify_children", means: fleet.GroupWrite},
	{object: "node_groups", action: "edit_child_rules", means: fleet.GroupWrite},
	{object: "node_groups", action: "edit_classification", means: fleet.GroupWrite},
	{object: "node_groups", action: "edit_params_and_vars", means: fleet.GroupWrite},
	{object: "node_groups", action: "edit_config_data", means: fleet.GroupWrite},
	{object: "node_groups", action: "set_environment", means: fleet.GroupWrite},
	{object: "environment", action: "deploy_code", means: fleet.CodeDeploy, of: environments},
	{object: "puppetserver", action: "compile_catalogs", means: fleet.CompileRun},
	{object: "cert_requests", action: "accept_reject", means: fleet.CertificateWrite},
	{object: "users", action: "create", means: fleet.UserWrite},
	{object: "users", action: "edit", means: fleet.UserWrite},
	{object: "users", action: "reset_password", means: fleet.UserWrite},
	{object: "users", action: "disable", means: fleet.UserWrite},
	{object: "user_roles", action: "edit_members", means: fleet.UserWrite},
	{object: "user_roles", action: "create", means: fleet.RoleWrite},
	{object: "user_roles", action: "edit", means: fleet.RoleWrite},
}

// vocabulary is all permissions: those with a word there, and the others under their own.
var vocabulary = func() []word {
	all := slices.Clone(pewords)
	for _, p := range fleet.Permissions() {
		if slices.ContainsFunc(pewords, func(w word) bool { return w.means == p }) {
			continue
		}
		object, action, found := strings.Cut(string(p), ":")
		if !found { // "*" is all of them
			continue
		}
		own := word{object: object, action: action, means: p}
		if p == fleet.ActionAsk || p == fleet.ActionRun {
			own.of = actions
		}
		all = append(all, own)
	}
	return all
}()

// wordFor finds a permission by type and action.
func wordFor(object, action string) (word, bool) {
	i := slices.IndexFunc(vocabulary, func(w word) bool { return w.object == object && w.action == action })
	if i < 0 {
		return word{}, false
	}
	return vocabulary[i], true
}

// wordsOf are the words of a permission; all for fleet.Everything.
func wordsOf(p fleet.Permission) []word {
	return slices.DeleteFunc(slices.Clone(vocabulary), func(w word) bool { return p != fleet.Everything && w.means != p })
}

// triple is a permission as clients read and write it.
type triple struct {
	Object   string `json:"object_type"`
	Action   string `json:"action"`
	Instance string `json:"instance"`
}

func (t triple) String() string { return t.Object + ":" + t.Action + ":" + t.Instance }

// triplesOf says grants as triples, each once and in order. plain is false when one has bounds that a triple cannot say: its
// instance is then these bounds in words.
func triplesOf(grants []fleet.Grant) (all []triple, plain bool) {
	plain, all = true, []triple{}
	for _, g := range grants {
		for _, w := range wordsOf(g.Permission) {
			instances, said := instancesOf(g, w)
			plain = plain && said
			for _, instance := range instances {
				all = append(all, triple{w.object, w.action, instance})
			}
		}
	}
	return ordered(all), plain
}

func ordered(all []triple) []triple {
	slices.SortFunc(all, func(a, b triple) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// instancesOf are the instances of a grant. said is false if these are words.
func instancesOf(g fleet.Grant, w word) (names []string, said bool) {
	scopes := 0
	for _, patterns := range [][]string{g.Environments, g.Tasks, g.Actions} {
		if len(patterns) > 0 {
			scopes++
		}
	}
	if !g.Scoped() {
		return []string{"*"}, true
	}
	if scopes == 1 && g.Nodes == "" && g.Permission != fleet.Everything {
		switch {
		case w.of == environments && len(g.Environments) > 0:
			return g.Environments, true
		case w.of == tasks && len(g.Tasks) > 0:
			return g.Tasks, true
		case w.of == actions && len(g.Actions) > 0:
			return g.Actions, true
		}
	}
	return []string{rbac.ScopeText(g)}, false
}

// grantsOf makes grants of triples. A permission that has several words is given by all of them or none: some alone would give
// more than they say.
func (h *roles) grantsOf(all []triple) (grants []fleet.Grant, err error) {
	given := map[fleet.Permission][]triple{}
	for _, t := range all {
		w, ok := wordFor(t.Object, t.Action)
		switch {
		case !ok:
			return nil, h.Bad(wrongShape, t, "there is no permission %.80s:%.80s; GET %s/types lists those that there are", t.Object, t.Action, v1)
		case t.Instance == "":
			return nil, h.Bad(wrongShape, t, "%s:%s: the instance is missing; * is all of them", t.Object, t.Action)
		case w.of == allOnly && t.Instance != "*":
			return nil, h.Bad(wrongShape, t, "%s:%s is for all of them: its instance must be *, not %.80q", t.Object, t.Action, t.Instance)
		}
		given[w.means] = append(given[w.means], t)
	}
	for _, permission := range slices.Sorted(maps.Keys(given)) {
		triples, words := given[permission], wordsOf(permission)
		for _, w := range words {
			if !slices.ContainsFunc(triples, func(t triple) bool { return t.Object == w.object && t.Action == w.action }) {
				return nil,
					h.Bad(wrongShape, triples[0], "%s:%s is %s here, which is %s:%s, too: give both, or none", triples[0].Object, triples[0].Action,
						permission, w.object, w.action)
			}
		}
		grants = append(grants, grantFor(permission, words[0].of, triples))
	}
	return grants, nil
}

func grantFor(permission fleet.Permission, of instances, triples []triple) fleet.Grant {
	g := fleet.Grant{Permission: permission}
	if slices.ContainsFunc(triples, func(t triple) bool { return t.Instance == "*" }) {
		return g
	}
	var names []string
	for _, t := range triples {
		names = append(names, t.Instance)
	}
	switch of {
	case environments:
		g.Environments = names
	case tasks:
		g.Tasks = names
	case actions:
		g.Actions = names
	case allOnly: // they said *
	}
	return g
}

// listedType is a type of object with its actions.
type listedType struct {
	Object      string         `json:"object_type"`
	DisplayName string         `json:"display_name"`
	Description string         `json:"description"`
	Actions     []listedAction `json:"actions"`
}

type listedAction struct {
	Name         string `json:"name"`
	DisplayName  string `json:"display_name"`
	Description  string `json:"description"`
	HasInstances bool   `json:"has_instances"`
}

func (*rights) listTypes(w http.ResponseWriter, _ *http.Request) error {
	var types []listedType
	for _, one := range vocabulary {
		i := slices.IndexFunc(types, func(t listedType) bool { return t.Object == one.object })
		if i < 0 {
			i, types = len(types), append(types, listedType{Object: one.object, DisplayName: title(one.object), Description: "see the permission " + string(one.means)})
		}
		types[i].Actions = append(types[i].Actions, listedAction{
			Name: one.action, DisplayName: title(one.action), Description: "the permission " + string(one.means), HasInstances: one.of != allOnly,
		})
	}
	slices.SortFunc(types, func(a, b listedType) int { return strings.Compare(a.Object, b.Object) })
	pejson.Write(w, http.StatusOK, types)
	return nil
}

func title(name string) string {
	text := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// rights answers what somebody may do.
type rights struct{ *service }

// judged is who is asked about: who asks, or the user with a UUID.
func (h *rights) judged(r *http.Request, id string) (fleet.Actor, error) {
	actor := fleet.ActorFrom(r.Context())
	if id == "" || strings.ToLower(id) == pejson.UserID(actor.Name) {
		return actor, nil
	}
	u, err := h.subject(r, id, fleet.UserRead)
	if err != nil {
		return actor, err
	}
	roles, err := h.Access.Roles(r.Context())
	other := fleet.Actor{Kind: fleet.UserActor, Name: u.Name}
	if !u.Disabled {
		other.Grants = rbac.GrantsOf(u.Roles, roles)
	}
	return other, err
}

// maxAsked is how many permissions are asked about at once.
const maxAsked = 1000

// permitted answers which of the permissions somebody has. One that is not known nobody has.
func (h *rights) permitted(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Subject     string   `json:"token"`
		Permissions []triple `json:"permissions"`
	}
	if err := h.read(w, r, &asked); err != nil {
		return err
	}
	if asked.Subject == "" || len(asked.Permissions) > maxAsked {
		return h.Bad(malformed, nil, "token (the id of a user) and at most %d permissions are needed", maxAsked)
	}
	actor, err := h.judged(r, asked.Subject)
	if err != nil {
		return err
	}
	answers := []bool{}
	for _, t := range asked.Permissions {
		w, known := wordFor(t.Object, t.Action)
		answers = append(answers, known && t.Instance != "" && rbac.Allow(actor, w.means, objectOf(w, t.Instance)) == nil)
	}
	pejson.Write(w, http.StatusOK, answers)
	return nil
}

// objectOf is what an instance names; all of them, if there are no others.
func objectOf(w word, instance string) (o fleet.Object) {
	if instance == "*" {
		return o
	}
	switch w.of {
	case environments:
		o.Environment = fleet.Environment(instance)
	case tasks:
		o.Task = instance
	case actions:
		o.Action = instance
	case allOnly:
	}
	return o
}

// instances lists for which instances somebody has a permission.
func (h *rights) instances(w http.ResponseWriter, r *http.Request) error {
	one, ok := wordFor(r.PathValue("type"), r.PathValue("action"))
	if !ok {
		return fault.New(fault.NotFound, "there is no permission %.80s:%.80s; GET %s/types lists those that there are", r.PathValue("type"),
			r.PathValue("action"), v1)
	}
	actor, err := h.judged(r, r.PathValue("uuid"))
	if err != nil {
		return err
	}
	names := []string{}
	if rbac.Allow(actor, one.means, fleet.Object{}) == nil {
		names = []string{"*"}
	} else if one.of != allOnly {
		for _, g := range slices.Concat(actor.Grants, actor.Within) {
			for _, name := range slices.Concat(g.Environments, g.Tasks, g.Actions) {
				if rbac.Allow(actor, one.means, objectOf(one, name)) == nil && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
	}
	pejson.Write(w, http.StatusOK, names)
	return nil
}
