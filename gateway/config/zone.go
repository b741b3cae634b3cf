package config

import "time"

// Zone is the time zone in which schedules are read: the configured one, else that of the machine.
func (c *Config) Zone() *time.Location {
	if c.Timezone != "" {
		if zone, err := time.LoadLocation(c.Timezone); err == nil {
			return zone
		}
	}
	return time.Local
}
