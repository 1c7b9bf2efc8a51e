// Package inventorytest holds what every inventory store must do, as a suite,
// and a store in memory that does it.
package inventorytest
