package target

import (
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
)

// AllowOwn returns nil when actor has the permission without scope; with one, when the job is their own.
func AllowOwn(actor fleet.Actor, permission fleet.Permission, j job.Job) error {
	refusal := rbac.Allow(actor, permission, fleet.Object{})
	if refusal == nil || rbac.Scoped(actor, permission) && j.Actor == actor.Name && j.ActorKind == actor.Kind {
		return nil
	}
	if rbac.Scoped(actor, permission) {
		return fault.New(fault.Denied, "%s %s has the permission %s for some nodes only, and so for jobs of their own: job %d is somebody else's",
			actor.Kind, actor.Name, permission, j.ID)
	}
	return refusal
}
