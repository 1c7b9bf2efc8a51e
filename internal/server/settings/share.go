package settings

import (
	"strconv"
	"strings"
)

// VerifiedShare reads the setting verify_share, as in 1%; off is nothing.
func (c Config) VerifiedShare() (float64, error) {
	if c.VerifyShare == "off" {
		return 0, nil
	}
	share, err := percent("verify_share", c.VerifyShare)
	if err != nil {
		return 0, Bad("verify_share", "%q is neither off nor a share from 0%% to 100%%", c.VerifyShare)
	}
	return share, nil
}

// EnvironmentShare reads the setting compile_environment_share.
func (c Config) EnvironmentShare() (float64, error) {
	return percent("compile_environment_share", c.CompileShare)
}

// percent is a share of the setting key.
func percent(key, text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(share >= 0 && share <= 100) {
		return 0, Bad(key, "%q is no share from 0%% to 100%%; write for example 50%%", text)
	}
	return share / 100, nil
}
