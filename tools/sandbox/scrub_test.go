package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScrub_Names(t *testing.T) {
	for name, secret := range map[string]bool{
		"OPENAI_API_KEY": true, "github_token": true, "AWS_SECRET_ACCESS_KEY": true, "PGPASSWORD": true, "MYSQL_PWD": true,
		"DB_PASS": true, "SSH_AUTH_SOCK": true, "GOOGLE_APPLICATION_CREDENTIALS": true, "apiKey": true, "MYKEY": true,
		"PATH": false, "PWD": false, "OLDPWD": false, "GIT_AUTHOR_NAME": false, "KEYBOARD": false, "MONKEY": false,
		"PASSAGE": false, "LANG": false, "AUTHORS": false, "COMPASS": false,
	} {
		require.Equal(t, secret, SecretName(name), name)
	}
	allowed, refused := CheckPassthrough([]string{"GH_TOKEN", "herald_x", "Anthropic_Api_Key", ""})
	require.Equal(t, []string{"GH_TOKEN"}, allowed)
	require.Equal(t, []string{"herald_x", "Anthropic_Api_Key"}, refused)
	got := Scrub([]string{"DATABASE_URL=postgres://u:pw@h/d", "SITE=https://h/a@b:c", "broken"}, nil, nil)
	require.Equal(t, map[string]string{"SITE": "https://h/a@b:c"}, got)
}
