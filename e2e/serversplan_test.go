package e2e_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// harm is what is done to several servers and what they need.
type harm int

const (
	serverKilled harm = iota
	serverFrozen
	databaseKilled
	databaseFrozen
	natsKilled
	storeKilled
	agentKilled  // a real one
	nodesCrashed // simulated ones: their agents, or all that runs on them
	linkCut      // both ways
	linkHalfCut  // one way
	diskFull     // of a server
	otherDisk    // the disk of the database, of the store or of a real agent is full
	clockSkewed  // the database's, or a server's
)

var harmNames = [...]string{
	"kill -9 of server", "freeze server", "kill -9 of", "freeze", "kill -9 of", "kill -9 of", "kill -9 of", "crash simulated nodes at",
	"cut, both ways,", "cut, one way,", "fill the disk of", "fill the disk of", "skew the clock of",
}

func (h harm) String() string { return harmNames[h] }

// often is how many of each come in one deal. All come before one comes again.
var often = map[harm]int{
	serverKilled: 3, serverFrozen: 1, databaseKilled: 1, databaseFrozen: 1, natsKilled: 1, storeKilled: 1, agentKilled: 2, nodesCrashed: 1,
	linkCut: 3, linkHalfCut: 2, diskFull: 2, otherDisk: 1, clockSkewed: 1,
}

// Places of the story.
var (
	serverPlaces = []string{"s1", "s2", "s3"}
	nodePlaces   = []string{"live", "released"}
	agentPlaces  = []string{"agent-1", "agent-2"}
)

const (
	databasePlace = "db"
	natsPlace     = "nats"
	storePlace    = "store"
)

// links are all that something goes along.
func links() (all []link) {
	for _, s := range serverPlaces {
		for _, other := range slices.Concat([]string{databasePlace, natsPlace, storePlace}, nodePlaces, agentPlaces) {
			all = append(all, link{s, other})
		}
	}
	return all
}

// blight is one fault: what is done to whom, when and for how long, since the first one could come.
type blight struct {
	number    int
	harm      harm
	link      link   // what is cut, that way if one way only; the victim is its from
	refuse    bool   // of a link: who sends is told, else it is silent
	share     uint64 // of simulated nodes that are hit
	reboot    bool   // of them: what runs there ends, too
	offset    string // of a clock
	at, lasts time.Duration
}

func (b blight) victim() string { return b.link.from }

// ways are those of its link that are cut.
func (b blight) ways() []link {
	if b.harm == linkCut {
		return []link{b.link, b.link.back()}
	}
	return []link{b.link}
}

func (b blight) String() string {
	text := fmt.Sprintf("%3d at %5.1f s for %4.1f s: %s %s", b.number, b.at.Seconds(), b.lasts.Seconds(), b.harm, b.victim())
	if b.link.to != "" {
		text += " to " + b.link.to
	}
	if b.refuse {
		text += ", refused"
	}
	return text + strings.TrimRight(" "+b.offset, " ")
}

// subject is what nothing else may be done to meanwhile.
func (b blight) subject() string {
	switch b.harm {
	case linkCut, linkHalfCut:
		return min(b.link.from, b.link.to) + " and " + max(b.link.from, b.link.to)
	case diskFull:
		return "the disk of " + b.victim()
	case serverKilled, serverFrozen, databaseKilled, databaseFrozen, natsKilled, storeKilled, agentKilled, nodesCrashed, clockSkewed,
		otherDisk: // for which PostgreSQL ends
	}
	return b.victim() + " itself"
}

// Bounds of a plan.
const (
	mostAtOnce = 3
	leastPause = 500 * time.Millisecond
	mostPause  = 3 * time.Second
	leastLasts = time.Second
	mostLasts  = 12 * time.Second
)

// planBlights draws faults. The same seed gives the same ones. At most three last at the same time, and none has the subject of another one meanwhile.
func planBlights(seed uint64, count int, clocks []string) (plan []blight) {
	random := rand.New(rand.NewPCG(seed, 5))
	var deal []harm
	now := time.Duration(0)
	for len(plan) < count {
		if len(deal) == 0 {
			for h := serverKilled; h <= clockSkewed; h++ {
				deal = append(deal, slices.Repeat([]harm{h}, often[h])...)
			}
			random.Shuffle(len(deal), func(i, j int) { deal[i], deal[j] = deal[j], deal[i] })
		}
		now += leastPause + time.Duration(random.Int64N(int64(mostPause-leastPause))).Round(time.Millisecond)
		b := draw(random, deal[0], clocks)
		b.number, b.at = len(plan)+1, now
		deal = deal[1:]
		for wait := busyUntil(plan, b); wait > b.at; wait = busyUntil(plan, b) {
			b.at = wait
		}
		now = b.at
		plan = append(plan, b)
	}
	return plan
}

// busyUntil is when b may begin, as far as those before it are concerned.
func busyUntil(plan []blight, b blight) time.Duration {
	var ends []time.Duration
	until := b.at
	for _, other := range plan {
		end := other.at + other.lasts
		if end <= b.at {
			continue
		}
		if ends = append(ends, end); other.subject() == b.subject() {
			until = max(until, end)
		}
	}
	slices.Sort(ends)
	if len(ends) >= mostAtOnce {
		until = max(until, ends[len(ends)-mostAtOnce])
	}
	return until
}

func draw(random *rand.Rand, h harm, clocks []string) blight {
	pick := func(of []string) link { return link{from: of[random.IntN(len(of))]} }
	b := blight{
		harm: h, refuse: random.IntN(3) == 0, reboot: random.IntN(2) == 0, share: random.Uint64(), offset: [...]string{"+1h", "-1h"}[random.IntN(2)],
		lasts: (leastLasts + time.Duration(random.Int64N(int64(mostLasts-leastLasts)))).Round(time.Millisecond),
	}
	switch h {
	case serverKilled, serverFrozen, diskFull:
		b.link = pick(serverPlaces)
	case otherDisk:
		b.link = pick(slices.Concat([]string{databasePlace, storePlace}, agentPlaces))
	case databaseKilled, databaseFrozen:
		b.link.from = databasePlace
		b.lasts /= 2
	case natsKilled:
		b.link.from = natsPlace
	case storeKilled:
		b.link.from = storePlace
	case agentKilled:
		b.link = pick(agentPlaces)
	case nodesCrashed:
		b.link = pick(nodePlaces)
		b.lasts = 0
	case clockSkewed:
		b.link = pick(clocks)
	case linkCut, linkHalfCut:
		all := links()
		b.link = all[random.IntN(len(all))]
		if random.IntN(2) == 0 {
			b.link = b.link.back()
		}
	}
	if h != linkCut && h != linkHalfCut {
		b.refuse = false
	}
	if h != clockSkewed {
		b.offset = ""
	}
	return b
}

// moment is when a fault begins, or ends.
type moment struct {
	blight
	ends bool
}

func (m moment) when() time.Duration {
	if m.ends {
		return m.at + m.lasts
	}
	return m.at
}

// moments are the beginnings and ends of a plan, in order.
func moments(plan []blight) (all []moment) {
	for _, b := range plan {
		all = append(all, moment{b, false}, moment{b, true})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.when(), b.when()) })
	return all
}

// A plan is the same for the same seed, has each harm in each deal, and never does two things to the same at a time, nor more than three at all.
func TestPlanOfBlights(t *testing.T) {
	t.Parallel()
	deal := 0
	for _, n := range often {
		deal += n
	}
	if deal != 20 {
		t.Errorf("a deal has %d faults, and the suite has 20: each harm should come", deal)
	}
	for seed := range uint64(200) {
		plan := planBlights(seed, 3*deal, []string{databasePlace, "s1"})
		same(t, "the plan of the same seed", fmt.Sprint(plan), fmt.Sprint(planBlights(seed, 3*deal, []string{databasePlace, "s1"})))
		got := map[harm]int{}
		for _, b := range plan[:deal] {
			got[b.harm]++
		}
		same(t, "the first deal", often, got)
		last := map[string]moment{}
		open := 0
		for _, m := range moments(plan) {
			if before, there := last[m.subject()]; there && before.ends == m.ends {
				t.Fatalf("seed %d: %s, and then %s", seed, before, m)
			}
			last[m.subject()] = m
			if open++; m.ends {
				open -= 2
			}
			if open > mostAtOnce {
				t.Fatalf("seed %d: %d faults at the same time: %s", seed, open, m)
			}
		}
		if open != 0 {
			t.Errorf("seed %d: %d faults do not end", seed, open)
		}
	}
	if fmt.Sprint(planBlights(1, 20, []string{databasePlace})) == fmt.Sprint(planBlights(2, 20, []string{databasePlace})) {
		t.Error("two seeds give the same plan")
	}
}
