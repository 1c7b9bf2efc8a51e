//go:build !linux

package websocket

import "context"

// parking needs epoll: elsewhere every connection reads in its own goroutine.
type parking struct{}

type spot struct{}

func newParking() (*parking, error) { return nil, nil } //nolint:nilnil // nil says that there is none

func (*parking) Run(context.Context, func(*conn)) error { return nil }

func (c *conn) park() bool { return false }

func (c *conn) wait() {}

func (c *conn) unpark() {}
