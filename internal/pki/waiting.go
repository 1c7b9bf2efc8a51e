package pki

import (
	"container/heap"
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// waitingRoom knows which requests wait, since when and from which address, and
// who has to go when there are too many: of one address its oldest, of all the
// oldest of the address with most. Whoever floods pushes out his own; a node that
// was pushed out sends its request again when it looks for its certificate.
type waitingRoom struct {
	most, mostOfOne int

	mu      sync.Mutex
	places  map[fleet.Certname]*list.Element // of a RequestHead in its origin's line
	origins map[string]*origin
	crowd   crowd
}

// origin is an address with its waiting requests, the oldest first.
type origin struct {
	name string
	line *list.List
	at   int // its place in the crowd
}

func (o *origin) oldest() RequestHead { return o.line.Front().Value.(RequestHead) } //nolint:forcetypeassert // nothing else goes in

func newWaitingRoom(most, mostOfOne int) *waitingRoom {
	w := &waitingRoom{most: most, mostOfOne: mostOfOne}
	w.fill(nil)
	return w
}

// fill replaces what is known; heads are in the order in which they came.
func (w *waitingRoom) fill(heads []RequestHead) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places, w.origins, w.crowd = map[fleet.Certname]*list.Element{}, map[string]*origin{}, nil
	for _, head := range heads {
		w.enter(head)
	}
}

// add lets a request in, in place of one that its name had, and returns who has to go for it.
func (w *waitingRoom) add(head RequestHead) (out []fleet.Certname) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(head.Certname)
	own := w.enter(head)
	for own.line.Len() > w.mostOfOne {
		out = append(out, w.evict(own))
	}
	for len(w.places) > w.most {
		out = append(out, w.evict(w.crowd[0]))
	}
	return out
}

func (w *waitingRoom) evict(o *origin) fleet.Certname {
	name := o.oldest().Certname
	w.leave(name)
	return name
}

// remove forgets requests that wait no more.
func (w *waitingRoom) remove(names ...fleet.Certname) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.leave(name)
	}
}

// since lists the requests that came before a time, those of one origin or of all.
func (w *waitingRoom) since(before time.Time, from string) (names []fleet.Certname) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.origins {
		if from != "" && o.name != from {
			continue
		}
		for place := o.line.Front(); place != nil; place = place.Next() {
			if head := place.Value.(RequestHead); head.ReceivedAt.Before(before) { //nolint:forcetypeassert // nothing else goes in
				names = append(names, head.Certname)
			}
		}
	}
	return names
}

func (w *waitingRoom) enter(head RequestHead) *origin {
	o := w.origins[head.From]
	if o == nil {
		o = &origin{name: head.From, line: list.New()}
		w.origins[head.From] = o
		w.places[head.Certname] = o.line.PushBack(head)
		heap.Push(&w.crowd, o)
		return o
	}
	w.places[head.Certname] = o.line.PushBack(head)
	heap.Fix(&w.crowd, o.at)
	return o
}

func (w *waitingRoom) leave(name fleet.Certname) {
	place := w.places[name]
	if place == nil {
		return
	}
	delete(w.places, name)
	o := w.origins[place.Value.(RequestHead).From] //nolint:forcetypeassert // nothing else goes in
	o.line.Remove(place)
	if o.line.Len() > 0 {
		heap.Fix(&w.crowd, o.at)
		return
	}
	delete(w.origins, o.name)
	heap.Remove(&w.crowd, o.at)
}

// crowd orders origins: the one with most requests first, of equals the one that
// has waited longest. It is a heap.
type crowd []*origin

func (c crowd) Len() int { return len(c) }

func (c crowd) Less(i, j int) bool {
	a, b := c[i], c[j]
	if a.line.Len() == 0 || b.line.Len() == 0 { // about to be removed
		return a.line.Len() > b.line.Len()
	}
	if a.line.Len() != b.line.Len() {
		return a.line.Len() > b.line.Len()
	}
	return a.oldest().ReceivedAt.Before(b.oldest().ReceivedAt)
}

func (c crowd) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].at, c[j].at = i, j
}

// Push implements heap.Interface.
func (c *crowd) Push(x any) {
	o := x.(*origin) //nolint:forcetypeassert // nothing else goes in
	o.at = len(*c)
	*c = append(*c, o)
}

// Pop implements heap.Interface.
func (c *crowd) Pop() any {
	last := len(*c) - 1
	o := (*c)[last]
	*c = (*c)[:last]
	return o
}

// originOf is the address that limits are counted for: an IPv4 address, or the
// network of an IPv6 address, of which one machine has as many as it likes.
func originOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}
