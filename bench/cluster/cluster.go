package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/bench/internal/authority"
	"github.com/tutti-project/tutti/bench/internal/simfleet"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// cluster is servers and what they share.
type cluster struct {
	dir, binary string
	args        []string // of each server

	postgres *rivals.Postgres
	s3       *rivals.S3
	nats     *rivals.NATS
	servers  []*rivals.Tutti
	ca       *authority.Authority
}

func startCluster(ctx context.Context, dir string) (c *cluster, err error) {
	c = &cluster{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if c.binary, err = rivals.BuildTutti(ctx, dir); err != nil {
		return c, err
	}
	if c.postgres, err = rivals.StartPostgres(ctx, filepath.Join(dir, "postgres"), "shared_buffers=512MB"); err != nil {
		return c, err
	}
	if err := c.postgres.MakeDatabase(ctx, "tutti"); err != nil {
		return c, err
	}
	if c.s3, err = rivals.StartS3(ctx, dir); err != nil {
		return c, err
	}
	if c.nats, err = rivals.StartNATS(ctx, dir); err != nil {
		return c, err
	}
	key, random := filepath.Join(dir, "cluster.key"), make([]byte, 32)
	_, _ = rand.Read(random)
	if err := os.WriteFile(key, []byte(hex.EncodeToString(random)), 0o600); err != nil {
		return c, err
	}
	c.args = append([]string{
		"--database", c.postgres.URL("tutti"), "--blobs", "s3://tutti/content", "--blobs-endpoint", c.s3.Endpoint, "--blobs-credentials", c.s3.Credentials,
		"--broker-controllers", simfleet.ControllerName, "--cluster", "--cluster-key-file", key, "--nats-url", c.nats.URL,
	}, rivals.AsFastAsItCan...)
	return c, nil
}

// join starts one more server.
func (c *cluster) join(ctx context.Context) error {
	name := fmt.Sprintf("server-%d", len(c.servers)+1)
	s, err := rivals.StartTutti(ctx, c.binary, filepath.Join(c.dir, name), c.args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.servers = append(c.servers, s)
	if c.ca == nil {
		c.ca, err = authority.Open(filepath.Join(c.dir, name, "data"))
	}
	return err
}

// usage is that of all processes.
func (c *cluster) usage() (measure.Usage, error) {
	sum, err := c.serversUsage()
	for _, part := range []interface{ Usage() (measure.Usage, error) }{c.postgres, c.nats, c.s3} {
		usage, more := part.Usage()
		sum, err = sum.And(usage), errors.Join(err, more)
	}
	return sum, err
}

// serversUsage is that of the servers alone.
func (c *cluster) serversUsage() (sum measure.Usage, err error) {
	for _, s := range c.servers {
		usage, more := s.Usage()
		sum, err = sum.And(usage), errors.Join(err, more)
	}
	return sum, err
}

func (c *cluster) stop() (err error) {
	for _, s := range c.servers {
		err = errors.Join(err, s.Stop())
	}
	if c.nats != nil {
		err = errors.Join(err, c.nats.Stop())
	}
	if c.s3 != nil {
		err = errors.Join(err, c.s3.Stop())
	}
	if c.postgres != nil {
		err = errors.Join(err, c.postgres.Stop())
	}
	return err
}
