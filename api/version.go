package api

import "runtime/debug"

// ProgramVersion is the module's version and revision, as the build recorded them.
func ProgramVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return info.Main.Version + " " + setting.Value[:12]
		}
	}
	return info.Main.Version
}
