package rbac

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Role is a named list of grants.
type Role struct {
	Name        string
	Description string
	Grants      []fleet.Grant
	BuiltIn     bool // part of the program: cannot be changed
	ChangedAt   time.Time
	ChangedBy   string
}

// Administrator is the role that gives everything.
const Administrator = "administrator"

var reading = []fleet.Permission{
	fleet.CertificateRead, fleet.CodeRead, fleet.NodeRead, fleet.GroupRead, fleet.ReportRead, fleet.CatalogRead, fleet.QueryRun,
	fleet.TaskRead, fleet.PreviewRead, fleet.PolicyRead, fleet.ReleaseRead,
}

// working is what it takes to have nodes do what the deployed code says.
var working = []fleet.Permission{fleet.PuppetRun, fleet.TaskRun, fleet.JobRead, fleet.JobStop}

// BuiltIn is the roles that are always there.
func BuiltIn() []Role {
	role := func(name, description string, permissions ...[]fleet.Permission) Role {
		r := Role{Name: name, Description: description, BuiltIn: true}
		for _, p := range slices.Concat(permissions...) {
			r.Grants = append(r.Grants, fleet.Grant{Permission: p})
		}
		return r
	}
	return []Role{
		role(Administrator, "may do everything", []fleet.Permission{fleet.Everything}),
		role("auditor", "sees who may do what, and who did what", reading,
			[]fleet.Permission{fleet.UserRead, fleet.RoleRead, fleet.TokenRead, fleet.AuditRead}),
		role("deployer", "deploys and previews code, and so runs Ruby in a cell on the server and is root on nodes", reading, []fleet.Permission{
			fleet.CodeDeploy, fleet.PreviewCreate, fleet.CompileRun,
		}),
		role("commander", "has nodes do anything: Puppet, tasks, actions, commands, scripts, files", reading, working,
			[]fleet.Permission{fleet.ActionAsk, fleet.ActionRun, fleet.CommandRun, fleet.ScriptRun, fleet.FileSend}),
		role("operator",
			"runs the fleet: certificates, groups, nodes, compiling, releases of catalogs, Puppet and tasks; previews code, and so runs Ruby in a cell on the server",
			reading, working,
			[]fleet.Permission{
				fleet.CertificateWrite, fleet.GroupWrite, fleet.NodePurge, fleet.CatalogRelease, fleet.PreviewCreate, fleet.ReleaseCreate, fleet.ReleaseControl,
				fleet.ReleaseApprove, fleet.CompileRun, fleet.CompilePause, fleet.MetricsRead,
			}),
		role("viewer", "sees nodes, code, groups, reports and certificates", reading),
	}
}

// builtIn finds a role that is part of the program.
func builtIn(name string) (Role, bool) {
	for _, r := range BuiltIn() {
		if r.Name == name {
			return r, true
		}
	}
	return Role{}, false
}

// Bounds of a role.
const (
	maxGrants   = 200
	maxPatterns = 100
	maxText     = 1000 // bytes of a description or condition
)

// checkRole checks what somebody wants a role to be.
func checkRole(r Role, checkScope func(string) error) error {
	if err := checkName("role", r.Name); err != nil {
		return err
	}
	if len(r.Description) > maxText {
		return fault.New(fault.Invalid, "role %s: the description has %d bytes, at most %d are allowed", r.Name, len(r.Description), maxText)
	}
	if len(r.Grants) == 0 || len(r.Grants) > maxGrants {
		return fault.New(fault.Invalid, "role %s: 1 to %d grants are needed, not %d; a grant is a permission such as %s", r.Name, maxGrants,
			len(r.Grants), fleet.NodeRead)
	}
	for _, g := range r.Grants {
		if err := checkGrant(g, checkScope); err != nil {
			return fault.Wrap(fault.Of(err), err, "role %s: %s", r.Name, fault.Detail(err))
		}
	}
	return nil
}

func checkGrant(g fleet.Grant, checkScope func(string) error) error {
	if !fleet.IsPermission(g.Permission) {
		return &fault.Error{
			Kind: fault.Invalid, Detail: fmt.Sprintf("%.60q is no permission; there are %s", g.Permission, permissionList()),
			Hint: fault.DidYouMean(string(g.Permission), strings.Split(permissionList(), ", ")),
		}
	}
	for what, patterns := range map[string][]string{"environment": g.Environments, "task": g.Tasks, "action": g.Actions} {
		if len(patterns) > maxPatterns {
			return fault.New(fault.Invalid, "%s has %d %ss, at most %d are allowed", g.Permission, len(patterns), what, maxPatterns)
		}
		for _, p := range patterns {
			if !isPattern(p, what) {
				return fault.New(fault.Invalid, "%.60q is no pattern of %s %s: letters, digits, underscore, %s and * are allowed", p, article(what), what, separators[what])
			}
		}
	}
	if g.Nodes == "" {
		return nil
	}
	if len(g.Nodes) > maxText {
		return fault.New(fault.Invalid, "the condition on nodes has %d bytes, at most %d are allowed", len(g.Nodes), maxText)
	}
	return checkScope(g.Nodes)
}

func permissionList() string {
	words := make([]string, 0, len(fleet.Permissions()))
	for _, p := range fleet.Permissions() {
		words = append(words, string(p))
	}
	return strings.Join(words, ", ")
}

// separators are what may be in a name beside letters, digits and underscores.
var separators = map[string]string{"environment": "::", "task": "::", "action": ". -"}

func article(what string) string {
	if strings.ContainsRune("aei", rune(what[0])) {
		return "an"
	}
	return "a"
}

func isPattern(p, what string) bool {
	ok := p != "" && len(p) <= 200
	for i := range len(p) {
		c := p[i]
		ok = ok &&
			(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '*' || c != ' ' && strings.IndexByte(separators[what], c) >= 0)
	}
	return ok
}

// maxName is the longest name of a user or role, in bytes.
const maxName = 64

// checkName checks the name of a user or role.
func checkName(what, name string) error {
	ok := name != "" && len(name) <= maxName && name[0] != '-' && name[0] != '.'
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if !ok {
		return fault.New(fault.Invalid, "a %s's name has 1 to %d of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit; not %.80q", what,
			maxName, name)
	}
	return nil
}
