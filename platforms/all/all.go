// Package all is the one list of the platforms that Herald has.
package all

import (
	"herald/platforms"
	"herald/platforms/discord"
	"herald/platforms/signal"
	"herald/platforms/slack"
	"herald/platforms/teams"
	"herald/platforms/telegram"
	"herald/platforms/web"
)

// Kinds returns every platform once, in the order of the reference of the configuration.
func Kinds() []platforms.Kind {
	return []platforms.Kind{web.Kind{}, telegram.Kind{}, teams.Kind{}, slack.Kind{}, discord.Kind{}, signal.Kind{}}
}
