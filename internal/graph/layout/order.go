package layout

import (
	"cmp"
	"slices"
)

// orderRows makes crossings few: each row is sorted by the middle of what its spots are tied to, in the row above on the way down and in the
// one below on the way up. The best order that was seen is kept.
func (d *drawing) orderRows() {
	d.at, d.wish = make([]int, len(d.rowOf)), make([]float64, len(d.rowOf))
	best, fewest := d.copyRows(), d.crossings()
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		for row := 1; row < len(d.rows); row++ {
			d.sortRow(row, row-1, d.up)
		}
		for row := len(d.rows) - 2; row >= 0; row-- {
			d.sortRow(row, row+1, d.down)
		}
		n := d.crossings()
		if n >= fewest {
			break
		}
		best, fewest = d.copyRows(), n
	}
	d.rows = best
}

func (d *drawing) copyRows() [][]int {
	rows := make([][]int, len(d.rows))
	for i, row := range d.rows {
		rows[i] = slices.Clone(row)
	}
	return rows
}

// sortRow sorts a row by where its neighbours stand in another one. What has none there stays about where it is.
func (d *drawing) sortRow(row, by int, neighbours [][]int) {
	place, wish := d.places(by), d.wish
	for i, spot := range d.rows[row] {
		wish[spot] = float64(i)
		if ties := neighbours[spot]; len(ties) > 0 {
			sum := 0
			for _, tie := range ties {
				sum += place[tie]
			}
			wish[spot] = float64(sum) / float64(len(ties))
		}
	}
	slices.SortStableFunc(d.rows[row], func(a, b int) int { return cmp.Compare(wish[a], wish[b]) })
}

// places is where spots stand, from the left: it is right for those of the row.
func (d *drawing) places(row int) []int {
	for i, spot := range d.rows[row] {
		d.at[spot] = i
	}
	return d.at
}

// crossings counts how often lines cross between neighbouring rows.
func (d *drawing) crossings() int {
	n := 0
	for row := 1; row < len(d.rows); row++ {
		n += d.crossingsAbove(row)
	}
	return n
}

// crossingsAbove counts inversions with a binary indexed tree: W. Barth, M. Jünger, P. Mutzel, Simple and efficient bilayer cross counting,
// 2002.
func (d *drawing) crossingsAbove(row int) int {
	place := d.places(row - 1)
	tree, seen, n := make([]int, len(d.rows[row-1])+1), 0, 0
	for _, spot := range d.rows[row] {
		for _, tie := range d.up[spot] { // those before it that end further right
			before := 0
			for i := place[tie] + 1; i > 0; i -= i & -i {
				before += tree[i]
			}
			n += seen - before
		}
		for _, tie := range d.up[spot] {
			for i := place[tie] + 1; i < len(tree); i += i & -i {
				tree[i]++
			}
		}
		seen += len(d.up[spot])
	}
	return n
}
