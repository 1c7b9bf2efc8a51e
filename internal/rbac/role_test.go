package rbac_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// The page about access lists every built-in role with its description and what it has beyond a viewer.
func TestThePageListsTheBuiltInRoles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	var viewer []string
	for _, r := range rbac.BuiltIn() {
		if r.Name == "viewer" {
			viewer = permissions(r)
		}
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `") && strings.Count(line, "|") == 5 {
			rows = append(rows, strings.TrimSuffix(line, "\n"))
		}
	}
	var want []string
	for _, r := range rbac.BuiltIn() {
		has, ruby := permissions(r), "no"
		for _, p := range []fleet.Permission{fleet.Everything, fleet.CodeDeploy, fleet.PreviewCreate} {
			if slices.Contains(has, "`"+string(p)+"`") {
				ruby = "yes"
			}
		}
		text := strings.Join(has, ", ")
		if r.Name != "viewer" && r.Name != rbac.Administrator {
			text = "what `viewer` has, and " + strings.Join(slices.DeleteFunc(has, func(p string) bool { return slices.Contains(viewer, p) }), ", ")
		}
		want = append(want, "| `"+r.Name+"` | "+r.Description+" | "+text+" | "+ruby+" |")
	}
	for _, row := range want {
		if !slices.Contains(rows, row) {
			t.Errorf("docs/access.md lacks the row\n%s", row)
		}
	}
	for _, row := range rows {
		if !slices.Contains(want, row) {
			t.Errorf("docs/access.md has a row that is not true\n%s", row)
		}
	}
}

// Who may have code run on the server is told so where roles are listed.
func TestRolesSayThatTheyRunCode(t *testing.T) {
	t.Parallel()
	for _, r := range rbac.BuiltIn() {
		has := permissions(r)
		if (slices.Contains(has, "`code:deploy`") || slices.Contains(has, "`preview:create`")) != strings.Contains(r.Description, "runs Ruby") {
			t.Errorf("role %s with %v says: %s", r.Name, has, r.Description)
		}
	}
}

func permissions(r rbac.Role) (has []string) {
	for _, g := range r.Grants {
		has = append(has, "`"+string(g.Permission)+"`")
	}
	return has
}
