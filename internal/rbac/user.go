package rbac

import (
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// UserKind says how a user proves who they are.
type UserKind string

// The kinds of user.
const (
	Person UserKind = "person" // by password, then token
	Node   UserKind = "node"   // by the client certificate of that name
)

// User is somebody who has roles.
type User struct {
	Name      string
	Kind      UserKind
	Roles     []string // sorted
	Password  string   // argon2id; empty: nobody can log in
	Disabled  bool
	CreatedAt time.Time
	ChangedAt time.Time // roles, state or password
	ChangedBy string
	LoginAt   time.Time

	Failures    int       // failed logins in a row
	LockedUntil time.Time // passwords are not taken before
}

// AdminUser is the built-in administrator, to whom the token in the data
// directory belongs. It always is one.
const AdminUser = "admin"

// maxRoles is how many roles a user or token has at most.
const maxRoles = 50

func checkUser(u User) error {
	switch u.Kind {
	case Person:
		if err := checkName("user", u.Name); err != nil {
			return err
		}
	case Node:
		if _, err := fleet.ParseCertname(u.Name); err != nil {
			return err
		}
		if u.Password != "" {
			return fault.New(fault.Invalid, "user %s is a node: it shows its certificate and has no password", u.Name)
		}
	default:
		return fault.New(fault.Invalid, "a user's kind must be person or node, not %.40q", u.Kind)
	}
	if u.Name == AdminUser && (u.Disabled || !slices.Contains(u.Roles, Administrator)) {
		return fault.New(fault.Conflict, "the user %s is built in: it stays an administrator and cannot be disabled", AdminUser)
	}
	return nil
}

// sortedRoles is roles in order, each once.
func sortedRoles(roles []string) ([]string, error) {
	if len(roles) > maxRoles {
		return nil, fault.New(fault.Invalid, "%d roles are named, at most %d are allowed", len(roles), maxRoles)
	}
	roles = slices.Clone(roles)
	slices.Sort(roles)
	return slices.Compact(roles), nil
}

// lockedFor is how long a user is locked after so many failures in a row: once
// they are too many, each one doubles the time.
func (c Config) lockedFor(failures int) time.Duration {
	if failures < c.MaxFailures {
		return 0
	}
	most := max(c.Lockout, maxLockout)
	lock := c.Lockout
	for range failures - c.MaxFailures {
		if lock >= most {
			break
		}
		lock *= 2
	}
	return min(lock, most)
}

// maxLockout is where doubling ends.
const maxLockout = time.Hour
