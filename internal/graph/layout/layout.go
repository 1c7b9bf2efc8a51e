// Package layout finds places for boxes and for the lines between them, as a picture of what waits for what needs them.
//
// It is the layered drawing of Sugiyama, Tagawa and Toda (Methods for visual understanding of hierarchical system structures, 1981): every box
// gets a row below all boxes that point at it, the order in each row is chosen for few crossings, and then each box is moved to the
// middle of those that it is tied to. Rows are bounded: what does not fit goes to a row below. Boxes without a line stand in rows of
// their own, under the others.
//
// Lines point down. One that would close a circle points up, and says so. No two boxes overlap, and no line touches a box but those at
// its ends: on its way through a row it has a place of its own in that row.
//
// The same input gives the same picture. Nothing here keeps state.
package layout

// Box is how large something is.
type Box struct{ Width, Height int }

// Line ties two boxes, by their places in the list.
type Line struct{ From, To int }

// Point is a place in the picture; Y grows downwards.
type Point struct{ X, Y int }

// Path is how a line runs: down from the box where it begins, or, of one that closes a circle, up.
type Path struct {
	Points []Point
	Back   bool // it closes a circle
}

// Picture is where everything stands.
type Picture struct {
	Width, Height int
	Boxes         []Point // the upper left corner of each
	Rows          []int   // of each box, from 0
	Paths         []Path  // of each line; of a box to itself: none
}

// The distances of a picture.
const (
	between = 24 // boxes of a row
	lane    = 12 // lines that pass a row, and boxes beside them
	gap     = 48 // rows
	sweeps  = 8  // how often the order of rows is made better, each time down and up
)

// Draw places boxes.
func Draw(boxes []Box, lines []Line) Picture {
	d := drawing{boxes: boxes, lines: lines}
	d.turnCircles()
	d.chooseRows()
	d.threadLines()
	d.orderRows()
	d.place()
	return d.picture()
}

// drawing is a picture on its way. Spots are what stands in rows: the boxes first, in their order, then the places where lines pass.
type drawing struct {
	boxes  []Box
	lines  []Line
	back   []bool    // by line: it is drawn from its end to its beginning
	tied   []bool    // by box: it has a line
	rowOf  []int     // by spot
	rows   [][]int   // spots of each row, from left to right
	up     [][]int   // by spot: spots of the row above that it is tied to
	down   [][]int   // by spot: those of the row below
	ways   [][]int   // by line: its spots from above to below
	at     []int     // by spot: where it stands in its row; for a while
	wish   []float64 // by spot: where it wants to stand; for a while
	centre []float64 // by spot
	tops   []int     // by row
	highs  []int     // by row
}

// ends is the upper and the lower box of a line.
func (d *drawing) ends(line int) (upper, lower int) {
	l := d.lines[line]
	if d.back[line] {
		return l.To, l.From
	}
	return l.From, l.To
}

func (d *drawing) width(spot int) int {
	if spot < len(d.boxes) {
		return d.boxes[spot].Width
	}
	return 0
}

// apart is how far the centres of two neighbours in a row must be from each other at least.
func (d *drawing) apart(left, right int) float64 {
	space := between
	if left >= len(d.boxes) || right >= len(d.boxes) {
		space = lane
	}
	return float64((d.width(left)+1)/2 + (d.width(right)+1)/2 + space)
}
