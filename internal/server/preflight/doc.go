// Package preflight looks for what would keep a server from its start or from its work, and says how each is mended.
//
// Check makes every check and changes nothing; Start makes those that each start makes, and refuses one that would fail.
package preflight
