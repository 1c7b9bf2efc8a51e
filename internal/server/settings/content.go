package settings

import (
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/blobs3"
)

// BlobsElsewhere says whether content is not in the data directory.
func (c Config) BlobsElsewhere() bool { return c.Blobs != "" && c.Blobs != BlobsInDirectory }

// BlobsInDirectory is the word for content in the data directory.
const BlobsInDirectory = "directory"

// S3 is the S3 store of a place, with these settings.
func (c Config) S3(place string) blobs3.Config {
	return blobs3.Config{
		Place: place, Endpoint: c.BlobsEndpoint, Region: c.BlobsRegion, PathStyle: c.BlobsPathStyle, CAFile: c.BlobsCA,
		CredentialsFile: c.BlobsCredentials, Timeout: c.BlobsTimeout,
	}
}

func (c Config) checkBlobs() error {
	for key, path := range map[string]string{"blobs_ca": c.BlobsCA, "blobs_credentials": c.BlobsCredentials} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return Bad(key, "%q is not the absolute path of a file", path)
		}
	}
	if !c.BlobsElsewhere() {
		return nil
	}
	if err := c.S3(c.Blobs).Check(); err != nil {
		return Bad("blobs", "%s", fault.Detail(err))
	}
	return nil
}
