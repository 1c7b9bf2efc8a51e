package cli

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/git"
)

// source is a directory to deploy and where it came from.
type source struct {
	dir, origin, commit string
	cloned              bool
	warnings            []string // of what is in it
	close               func()
}

// openSource takes a directory as it is and clones anything else.
func openSource(ctx context.Context, text string, options code.BuildOptions) (source, error) {
	if isDir(text) {
		dir, err := filepath.Abs(text)
		return source{dir: dir, origin: dir, commit: git.Head(ctx, dir), close: func() {}}, err
	}
	repository, err := git.Parse(text)
	if err != nil {
		return source{}, fault.New(fault.Invalid, "%.200q is neither a directory here nor a git repository: %s", text, fault.Detail(err))
	}
	if options.FollowLinks {
		return source{},
			usageError{
				fault.New(fault.Invalid,
					"--follow-links is for a directory of yours: a link in a repository could name any file of this machine. Clone %s, look at it, and deploy the directory",
					repository),
			}
	}
	dir, err := os.MkdirTemp("", "tutti-deploy-")
	if err != nil {
		return source{}, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	commit, err := git.Clone(ctx, repository.URL, repository.Ref, dir)
	if err != nil {
		remove()
		return source{}, err
	}
	return source{dir: dir, origin: repository.String(), commit: commit, cloned: true, close: remove}, nil
}

// The size of one question and of one upload.
const (
	askDigests  = 10_000
	uploadBlobs = 2_000
	uploadBytes = 256 << 20
)

// upload sends the server what it does not have and returns how many files that was.
func upload(ctx context.Context, a *app, client *api.Client, bundle *code.Bundle) (sent int, err error) {
	sizes := map[fleet.Digest]int64{}
	for _, file := range bundle.Manifest.Files {
		sizes[file.Digest] = file.Size
	}
	missing, err := missingBlobs(ctx, client, bundle.Manifest.Digests())
	if err != nil {
		return 0, err
	}
	for sent < len(missing) {
		part := firstPart(missing[sent:], sizes)
		if err := uploadPart(ctx, client, bundle, part, sizes); err != nil {
			return sent, err
		}
		sent += len(part)
		if len(missing) > len(part) {
			a.hint("  %d of %s uploaded", sent, fault.Count(len(missing), "file"))
		}
	}
	return sent, nil
}

func missingBlobs(ctx context.Context, client *api.Client, digests []fleet.Digest) ([]fleet.Digest, error) {
	var missing []fleet.Digest
	for len(digests) > 0 {
		n := min(len(digests), askDigests)
		request := api.BlobMissingRequest{}
		for _, digest := range digests[:n] {
			request.Digests = append(request.Digests, string(digest))
		}
		answer, err := api.BlobMissing.Call(ctx, client, request)
		if err != nil {
			return nil, err
		}
		for _, digest := range answer.Missing {
			missing = append(missing, fleet.Digest(digest))
		}
		digests = digests[n:]
	}
	return missing, nil
}

// firstPart is as many digests as fit one upload; at least one.
func firstPart(digests []fleet.Digest, sizes map[fleet.Digest]int64) []fleet.Digest {
	total := int64(0)
	for i, digest := range digests {
		total += sizes[digest]
		if i > 0 && (total > uploadBytes || i == uploadBlobs) {
			return digests[:i]
		}
	}
	return digests
}

// uploadPart streams blobs as a tar archive while the server stores them.
func uploadPart(ctx context.Context, client *api.Client, bundle *code.Bundle, part []fleet.Digest, sizes map[fleet.Digest]int64) error {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(writeArchive(writer, bundle, part, sizes)) }()
	_, err := api.BlobUpload.Send(ctx, client, reader)
	_ = reader.CloseWithError(err) // ends the writer if the server answered early
	return err
}

func writeArchive(to io.Writer, bundle *code.Bundle, part []fleet.Digest, sizes map[fleet.Digest]int64) error {
	archive := tar.NewWriter(to)
	for _, digest := range part {
		if err := archive.WriteHeader(&tar.Header{Name: string(digest), Size: sizes[digest], Mode: 0o600, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if err := copyBlob(archive, bundle, digest); err != nil {
			return err
		}
	}
	return archive.Close()
}

func copyBlob(to io.Writer, bundle *code.Bundle, digest fleet.Digest) error {
	blob, err := bundle.Open(digest)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	_, err = io.Copy(to, blob)
	return err
}

func deploy(ctx context.Context, client *api.Client, environment string, from source, bundle *code.Bundle, check string) (api.Deployed, error) {
	manifest, err := bundle.Manifest.Encode()
	if err != nil {
		return api.Deployed{}, err
	}
	version, err := api.VersionDeploy.Call(ctx, client, api.DeployRequest{
		Environment: environment, Commit: from.commit, Origin: from.origin, Manifest: manifest, Check: check,
	})
	return version, err
}
