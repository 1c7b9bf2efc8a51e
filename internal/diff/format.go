package diff

import (
	"fmt"
	"io"
)

// Format implements fmt.Formatter: a difference may hold secrets, and is never
// printed by accident.
func (d *Difference) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "a difference of catalogs")
}

// Format implements fmt.Formatter, as Difference does.
func (c *Catalog) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "a catalog") }
