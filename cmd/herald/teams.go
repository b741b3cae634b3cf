package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"herald/gateway/command"
	"herald/gateway/config"
	"herald/platforms/teams"
)

func teamsCmd(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "teams", Short: "Set a Microsoft Teams app up", Example: "  herald teams manifest --write herald-teams.zip"}
	cmd.AddCommand(teamsManifestCmd(g))
	return cmd
}

func teamsManifestCmd(g *globals) *cobra.Command {
	var o teams.ManifestOptions
	var file string
	cmd := &cobra.Command{
		Use: "manifest", Short: "Write the app package that puts the bot into Teams", Args: cobra.NoArgs,
		Long: `Write the app package: a zip archive with the manifest and two icons. Upload it in Teams under Apps, Manage your
apps, Upload an app. Without --write the manifest alone is printed.

The bot's id is TEAMS_CLIENT_ID where --bot-id does not say another. With --rsc the app asks for every message of
the chats and channels where it is added, and not only for those that mention it; set
TEAMS_REQUIRE_MENTION=true then if it should still answer mentions only.`,
		Example: "  herald teams manifest --write herald-teams.zip\n  herald teams manifest --write herald-teams.zip --name Hal --rsc --version 1.0.1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Commands = command.New(command.Services{}).Infos()
			if o.BotID == "" {
				id, err := g.teamsClientID()
				if err != nil {
					return err
				}
				o.BotID = id
			}
			if file == "" {
				out, err := teams.Manifest(o)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(out)
				return err
			}
			out, err := teams.Package(o)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, out, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written; in Teams: Apps, Manage your apps, Upload an app\n", file)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "write", "", "write the package to this file; without it the manifest is printed")
	f.StringVar(&o.BotID, "bot-id", "", "Application (client) ID of the bot (default TEAMS_CLIENT_ID)")
	f.StringVar(&o.Name, "name", "", "what people see and mention, at most 30 characters (default Herald)")
	f.StringVar(&o.Version, "version", "", "version of the package; a higher one replaces an installed app (default 1.0.0)")
	f.BoolVar(&o.RSC, "rsc", false, "ask for every message of the chats and channels where the app is")
	f.StringVar(&o.Developer, "developer", "", "who is shown as the developer")
	f.StringVar(&o.Website, "website", "", "https address of the developer")
	f.StringVar(&o.Privacy, "privacy", "", "https address of the privacy statement")
	f.StringVar(&o.Terms, "terms", "", "https address of the terms of use")
	f.StringSliceVar(&o.Domains, "domain", nil, "a domain of sign-in pages; may be repeated")
	return cmd
}

// teamsClientID reads the bot's id from the configuration. It makes no home.
func (g *globals) teamsClientID() (string, error) {
	home, err := config.ResolveHome(g.home, g.profileName(), os.Environ())
	if err != nil {
		return "", coded{err, exitConfig}
	}
	source, err := g.source(config.Paths{Home: home})
	if err != nil {
		return "", err
	}
	cfg, _, _ := config.Load(source)
	b, _ := cfg.Platforms.Block(teams.Platform)
	return b.Settings.(*teams.Settings).ClientID, nil
}
