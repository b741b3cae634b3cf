package gateway

import (
	"herald/gateway/config"
	"herald/platforms"
)

// builder makes the accounts of a platform from the configuration. An error is a *platforms.StartError: it is told
// in the log and in health, and the other platforms go on.
type builder func(*Gateway, *config.Config) ([]*account, error)

// builders are the platforms that can be started, and started anew, beside the browser chat.
var builders = map[platforms.Name]builder{
	"discord":  discordAccounts,
	"telegram": telegramAccounts,
	"teams":    teamsAccounts,
	"slack":    slackAccounts,
	"signal":   signalAccounts,
}

// addAccounts makes the adapters of a platform that is on; "" stands for all.
func (g *Gateway) addAccounts(only platforms.Name) {
	cfg := g.cfg()
	for _, b := range cfg.Platforms.Blocks() {
		name := platforms.Name(b.Name)
		build, ok := builders[name]
		if !ok || !b.On() || only != "" && only != name {
			continue
		}
		list, err := build(g, cfg)
		if err != nil {
			g.accounts.fail(name, err)
		}
		for _, acc := range list {
			g.accounts.add(acc)
		}
	}
}

// restartAccounts starts the adapters of these platforms anew with the configuration that is in force; ""
// stands for all that can be.
func (g *Gateway) restartAccounts(names map[platforms.Name]bool) {
	again := false
	for name := range builders {
		if names[name] || names[""] {
			g.accounts.remove(name)
			g.addAccounts(name)
			again = true
		}
	}
	if again {
		g.setCommands()
	}
}
