package puppet

import (
	"errors"
	"net/http"
	"sync"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// BackupRules is what nodes may do with the filebucket.
type BackupRules struct {
	Open  bool // every node may read what any node backed up
	Quota filebucket.Quota
}

// backedUp finds a content that the caller may see: a node what it backed up itself, and
// who may act for any node everything.
func (k *backups) backedUp(c *call, algorithm, sum string) (fleet.Digest, int64, error) {
	var whose fleet.Certname
	if c.actor.Kind == fleet.NodeActor && !k.rules().Open {
		whose = fleet.Certname(c.actor.Name)
	}
	digest, size, err := k.bucket.Blob(c.ctx(), whose, algorithm, sum)
	if whose == "" || !isNotFound(err) || k.roles == nil {
		return digest, size, err
	}
	actor, rolesErr := k.roles(c.ctx(), c.actor) // asked for only now: nodes that restore their own need none
	if rolesErr != nil {
		return "", 0, rolesErr
	}
	if rbac.Allow(actor, fleet.NodeAct, fleet.Object{}) != nil {
		return "", 0, err
	}
	return k.bucket.Blob(c.ctx(), "", algorithm, sum)
}

// rooms counts what nodes are sending. A content is stored before its row is: a quota that
// looked only at rows would let a node fill the disk with contents that are refused in the end.
type rooms struct {
	mu     sync.Mutex
	coming map[string]int64 // bytes by node
}

// room is what one content on its way takes of its node's quota.
type room struct {
	rooms *rooms
	node  string
	use   filebucket.Use
	quota filebucket.Quota
	taken int64
}

// openRoom begins to count a content; it refuses at once what cannot fit. nothing is set
// for a content that the node keeps already.
func (k *backups) openRoom(c *call, key backupKey) (*room, error) {
	r := &room{rooms: &k.rooms, node: c.actor.Name}
	node := fleet.Certname(c.actor.Name)
	_, _, err := k.bucket.Blob(c.ctx(), node, key.algorithm, key.sum)
	if err == nil || !isNotFound(err) {
		return r, err
	}
	r.quota = k.rules().Quota
	if r.use, err = k.bucket.BackupUse(c.ctx(), node); err != nil {
		return nil, err
	}
	announced := max(c.r.ContentLength, 0) // compressed, it becomes no less
	return r, r.quota.Admit(node, r.use, announced)
}

// take counts n more bytes.
func (r *room) take(n int64) error {
	if n == 0 || r.quota.Bytes == 0 {
		return nil
	}
	r.rooms.mu.Lock()
	defer r.rooms.mu.Unlock()
	if r.rooms.coming == nil {
		r.rooms.coming = map[string]int64{}
	}
	if err := r.quota.Admit(fleet.Certname(r.node), filebucket.Use{Bytes: r.use.Bytes}, r.rooms.coming[r.node]+n); err != nil {
		return err
	}
	r.rooms.coming[r.node] += n
	r.taken += n
	return nil
}

// close ends the count: the content is a row now, or was refused.
func (r *room) close() {
	if r.taken == 0 {
		return
	}
	r.rooms.mu.Lock()
	defer r.rooms.mu.Unlock()
	if r.rooms.coming[r.node] -= r.taken; r.rooms.coming[r.node] <= 0 {
		delete(r.rooms.coming, r.node)
	}
}

// full gives a refusal because of a quota its place on the wire: agents print its words.
func full(err error) error {
	if errors.Is(err, filebucket.ErrFull) {
		return problemf(http.StatusInsufficientStorage, runtimeError, "%s", fault.Detail(err))
	}
	return err
}
