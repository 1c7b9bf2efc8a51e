package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Classifier tells what groups give a node, and which nodes are in a group.
type Classifier interface {
	Explain(ctx context.Context, node fleet.Certname) (classify.Explained, error)
	// Members says which of the nodes are in the group, and of each whether it is
	// pinned there. There are at most inventory.MaxNamed.
	Members(ctx context.Context, group classify.ID, nodes []fleet.Certname) (pinned map[fleet.Certname]bool, err error)
}

// GroupDoubts says what groups name and neither code nor nodes have.
type GroupDoubts interface {
	Doubts(ctx context.Context, all, groups []classify.Group) (map[classify.ID][]string, error)
}

// groups answers the operations of groups.
type groups struct {
	groups     classify.Store
	classifier Classifier
	doubts     GroupDoubts // nil: nothing is compared
}

func (h *groups) bindings() []binding {
	return []binding{
		answer(api.GroupList, h.listGroups),
		answer(api.GroupShow, h.showGroup),
		answer(api.GroupCreate, h.createGroup),
		answer(api.GroupEdit, h.editGroup),
		answer(api.GroupDelete, h.deleteGroup),
		answer(api.GroupApply, h.applyGroups),
		answer(api.GroupExplain, h.explainGroups),
	}
}

func (h *groups) listGroups(ctx context.Context, _ api.Nothing) (api.List[api.Group], error) {
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.List[api.Group]{}, err
	}
	doubts, err := h.doubtsOf(ctx, groups, groups)
	list := api.List[api.Group]{Items: make([]api.Group, len(groups))}
	names := namesOf(groups)
	for i, g := range groups {
		list.Items[i] = groupOf(g, names)
		list.Items[i].Warnings = doubts[g.ID]
	}
	return list, err
}

func (h *groups) doubtsOf(ctx context.Context, all, groups []classify.Group) (map[classify.ID][]string, error) {
	if h.doubts == nil {
		return nil, nil //nolint:nilnil // there is nothing to compare them with
	}
	return h.doubts.Doubts(ctx, all, groups)
}

// told is a group with what is doubtful of it.
func (h *groups) told(ctx context.Context, all []classify.Group, g classify.Group) (api.Group, error) {
	doubts, err := h.doubtsOf(ctx, all, []classify.Group{g})
	shown := groupOf(g, namesOf(all))
	shown.Warnings = doubts[g.ID]
	return shown, err
}

func (h *groups) showGroup(ctx context.Context, request api.GroupRequest) (api.Group, error) {
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.Group{}, err
	}
	g, err := classify.Find(groups, request.Group)
	if err != nil {
		return api.Group{}, err
	}
	return h.told(ctx, groups, g)
}

func (h *groups) createGroup(ctx context.Context, request api.GroupCreateRequest) (api.Group, error) {
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.Group{}, err
	}
	g, err := specified(request.Spec, groups)
	if err != nil {
		return api.Group{}, err
	}
	if g.ID == "" {
		g.ID = classify.NewID()
	}
	if slices.ContainsFunc(groups, func(other classify.Group) bool { return other.Name == g.Name && other.ID != g.ID }) {
		return api.Group{}, &fault.Error{
			Kind: fault.Conflict, Detail: fmt.Sprintf("there is a group %q already", g.Name),
			Hint: fmt.Sprintf("tutti group show %q shows it, tutti group edit %q changes it", g.Name, g.Name),
		}
	}
	return h.changeGroup(ctx, classify.Change{Kind: classify.Create, Group: g}, groups)
}

func (h *groups) editGroup(ctx context.Context, request api.GroupEditRequest) (api.Group, error) {
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.Group{}, err
	}
	old, err := classify.Find(groups, request.Group)
	if err != nil {
		return api.Group{}, err
	}
	g, err := specified(request.Spec, groups)
	if err != nil {
		return api.Group{}, err
	}
	if g.ID != "" && g.ID != old.ID {
		return api.Group{}, fault.New(fault.Invalid, "group %.80q: id: it stays %s", old.Name, old.ID)
	}
	g.ID, g.Revision = old.ID, request.Revision
	return h.changeGroup(ctx, classify.Change{Kind: classify.Update, Group: g}, groups)
}

// changeGroup makes one change in the name of who asks.
func (h *groups) changeGroup(ctx context.Context, change classify.Change, groups []classify.Group) (api.Group, error) {
	saved, err := h.groups.ChangeGroups(ctx, signed(ctx, change))
	if err != nil {
		return api.Group{}, err
	}
	after := slices.DeleteFunc(slices.Clone(groups), func(g classify.Group) bool { return g.ID == saved[0].ID })
	return h.told(ctx, append(after, saved[0]), saved[0])
}

// signed notes who makes the changes, and when.
func signed(ctx context.Context, changes ...classify.Change) []classify.Change {
	now := time.Now().UTC()
	for i := range changes {
		changes[i].Group.ChangedBy, changes[i].Group.ChangedAt = fleet.ActorFrom(ctx).Name, now
	}
	return changes
}

func (h *groups) deleteGroup(ctx context.Context, request api.GroupDeleteRequest) (api.Nothing, error) {
	groups, _, err := h.groups.Groups(ctx)
	if err != nil {
		return api.Nothing{}, err
	}
	g, err := classify.Find(groups, request.Group)
	if err != nil {
		return api.Nothing{}, err
	}
	g.Revision = int64(request.Revision)
	_, err = h.groups.ChangeGroups(ctx, signed(ctx, classify.Change{Kind: classify.Delete, Group: g}))
	return api.Nothing{}, err
}

func (h *groups) applyGroups(ctx context.Context, request api.GroupApplyRequest) (api.GroupApplyResponse, error) {
	answer := api.GroupApplyResponse{Changes: []api.GroupChange{}, Applied: !request.DryRun}
	if len(request.Groups) == 0 {
		return answer, fault.New(fault.Invalid, "no groups are described; to delete all, describe %s alone", classify.RootName)
	}
	groups, revision, err := h.groups.Groups(ctx)
	if err != nil {
		return answer, err
	}
	if answer.Revision = revision; request.Revision != 0 && request.Revision != revision {
		return answer, fault.New(fault.Conflict, "groups were changed meanwhile; look at the differences again")
	}
	wanted := make([]classify.Wanted, len(request.Groups))
	for i, spec := range request.Groups {
		if wanted[i], err = wantedOf(spec); err != nil {
			return answer, err
		}
	}
	plan, err := classify.Plan(groups, wanted, classify.NewID)
	if err != nil {
		return answer, err
	}
	changes := make([]classify.Change, len(plan))
	for i, planned := range plan {
		changes[i] = planned.Change
		answer.Changes = append(answer.Changes, changeOf(planned))
	}
	if !request.DryRun && len(changes) > 0 {
		if _, err = h.groups.ChangeGroups(ctx, signed(ctx, changes...)); err != nil {
			return answer, err
		}
	}
	answer.Warnings, err = h.doubtsOfChanges(ctx, groups, changes)
	return answer, err
}

// doubtsOfChanges is what is doubtful of the groups that changes create and update.
func (h *groups) doubtsOfChanges(ctx context.Context, groups []classify.Group, changes []classify.Change) (warnings []string, err error) {
	applied, err := classify.Apply(groups, changes)
	if err != nil {
		return nil, err
	}
	doubts, err := h.doubtsOf(ctx, applied.Groups, applied.Saved)
	for _, g := range applied.Saved {
		for _, doubt := range doubts[g.ID] {
			warnings = append(warnings, "group "+g.Name+": "+doubt)
		}
	}
	return warnings, err
}

func changeOf(planned classify.Planned) api.GroupChange {
	change := api.GroupChange{
		Kind: string(planned.Change.Kind), ID: string(planned.Change.Group.ID), Name: planned.Name, Differences: []api.GroupDifference{},
	}
	for _, d := range planned.Differences {
		change.Differences = append(change.Differences, api.GroupDifference(d))
	}
	return change
}

// specified is a group with its parent found.
func specified(spec api.GroupSpec, groups []classify.Group) (classify.Group, error) {
	wanted, err := wantedOf(spec)
	if err != nil {
		return classify.Group{}, err
	}
	wanted.Group.Parent = classify.RootID
	if wanted.Parent != "" {
		parent, err := classify.Find(groups, wanted.Parent)
		if err != nil {
			return classify.Group{}, fault.New(fault.Invalid, "group %.80q: parent: %s", spec.Name, fault.Detail(err))
		}
		wanted.Group.Parent = parent.ID
	}
	return wanted.Group, nil
}

func wantedOf(spec api.GroupSpec) (classify.Wanted, error) {
	g := classify.Group{
		Name: spec.Name, Description: spec.Description, Environment: spec.Environment, EnvironmentGroup: spec.EnvironmentGroup,
		Classes: classesOf(spec.Classes), Variables: spec.Variables, Data: classesOf(spec.Data),
	}
	for _, node := range spec.Nodes {
		g.Pinned = append(g.Pinned, fleet.Certname(node)) // checked with the group
	}
	var err error
	if spec.ID != "" {
		if g.ID, err = classify.ParseID(spec.ID); err != nil {
			return classify.Wanted{}, err
		}
	}
	if g.Rule, err = ruleOf(spec.Rule); err != nil {
		return classify.Wanted{}, &fault.Error{Kind: fault.Invalid, Detail: fmt.Sprintf("group %.80q: %s", spec.Name, fault.Detail(err)), Hint: fault.Hint(err)}
	}
	return classify.Wanted{Group: g, Parent: spec.Parent}, nil
}

// ruleOf reads either spelling of a rule.
func ruleOf(text json.RawMessage) (*classify.Rule, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '"' {
		if len(text) == 0 {
			text = json.RawMessage("null")
		}
		return classify.ParseJSON(text)
	}
	var words string
	if err := json.Unmarshal(text, &words); err != nil {
		return nil, fault.New(fault.Invalid, "rule: %v", err)
	}
	if len(bytes.TrimSpace([]byte(words))) == 0 {
		return nil, nil //nolint:nilnil // no rule
	}
	return classify.ParseRule(words)
}

func classesOf(classes map[string]map[string]json.RawMessage) classify.Classes {
	out := make(classify.Classes, len(classes))
	for class, values := range classes {
		out[class] = values
	}
	return out
}

func plainClasses(classes classify.Classes) map[string]map[string]json.RawMessage {
	out := make(map[string]map[string]json.RawMessage, len(classes))
	for class, values := range classes {
		out[class] = values
	}
	return out
}

func namesOf(groups []classify.Group) map[classify.ID]string {
	names := make(map[classify.ID]string, len(groups))
	for _, g := range groups {
		names[g.ID] = g.Name
	}
	return names
}

func groupOf(g classify.Group, names map[classify.ID]string) api.Group {
	out := api.Group{
		ID: string(g.ID), Name: g.Name, Parent: names[g.Parent], ParentID: string(g.Parent), Description: g.Description,
		Environment: g.Environment, EnvironmentGroup: g.EnvironmentGroup, Classes: plainClasses(g.Classes), Variables: g.Variables,
		Data: plainClasses(g.Data), Revision: g.Revision, ChangedAt: timeOf(g.ChangedAt), ChangedBy: g.ChangedBy, Defect: g.Defect,
	}
	for _, node := range g.Pinned {
		out.Nodes = append(out.Nodes, string(node))
	}
	if g.Rule != nil {
		out.Rule, _ = g.Rule.MarshalJSON() // strings and lists
		out.RuleText = g.Rule.String()
	}
	return out
}

func (h *groups) explainGroups(ctx context.Context, request api.NameRequest) (api.GroupExplanation, error) {
	node, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.GroupExplanation{}, err
	}
	e, err := h.classifier.Explain(ctx, node)
	if err != nil {
		return api.GroupExplanation{}, err
	}
	r, names := e.Result, map[classify.ID]string{}
	for _, m := range e.Members {
		names[m.Group] = m.Name
	}
	out := api.GroupExplanation{
		Node: request.Name, FactsKnown: e.FactsKnown, TrustedKnown: e.TrustedKnown, Environment: r.Environment,
		Classes: plainClasses(r.Classes), Variables: r.Parameters, Data: plainClasses(r.Data),
		Conflicts: []api.GroupConflict{}, Origins: originsOf(r.Origins, names), Groups: make([]api.GroupMembership, len(e.Members)),
	}
	for _, c := range r.Conflicts {
		out.Conflicts = append(out.Conflicts, api.GroupConflict{
			Kind: string(c.Item.Kind), Class: c.Item.Class, Name: c.Item.Name, Origins: originsOf(c.Origins, names),
		})
	}
	for i, m := range e.Members {
		out.Groups[i] = membershipOf(m, names)
	}
	return out, nil
}

func originsOf(origins []classify.Origin, names map[classify.ID]string) []api.GroupOrigin {
	out := make([]api.GroupOrigin, len(origins))
	for i, o := range origins {
		out[i] = api.GroupOrigin{
			Kind: string(o.Item.Kind), Class: o.Item.Class, Name: o.Item.Name, Value: o.Value,
			Group: names[o.Group], GroupID: string(o.Group), State: string(o.State),
		}
		for _, leaf := range o.Via {
			out[i].Via = append(out[i].Via, names[leaf])
		}
	}
	return out
}

func membershipOf(m classify.Membership, names map[classify.ID]string) api.GroupMembership {
	out := api.GroupMembership{
		ID: string(m.Group), Name: m.Name, Depth: m.Depth, Member: m.Member, Leaf: m.Leaf, Pinned: m.Pinned,
		StoppedBy: names[m.Stopper], Why: make([]api.GroupFinding, len(m.Why)), Defect: m.Defect,
	}
	for i, f := range m.Why {
		out.Why[i] = api.GroupFinding(f)
	}
	return out
}
