//go:build linux && peers

package main

import "testing"

// TestPackageClientsInARun: npm and pip install inside of a run from registries that are
// allowed, and are refused by all others.
func TestPackageClientsInARun(t *testing.T) {
	t.Parallel()
	c := newClients(t)
	t.Run("clients", func(t *testing.T) {
		t.Run("npm", c.works("npm install --audit --fund --update-notifier --registry https://npm.HOST/ plain\nnode -p 'require(\"plain\")'", "added 1 package, and audited 2 packages", "found 0 vulnerabilities", "plain was installed"))
		t.Run("npm-refused", c.refused("npm install --registry https://npm.example.org/ plain", "403", blocked))

		t.Run("pip", c.works("/usr/bin/python3 -m pip install --target p --index-url https://pypi.HOST/simple/ probe\nPYTHONPATH=p /usr/bin/python3 -c 'import probe; print(probe.SAYS)'", "Successfully installed probe-1.0", "probe was installed"))
		t.Run("pip-refused", c.refused("/usr/bin/python3 -m pip install -vv --target p --index-url https://pypi.example.org/simple/ probe", "403 Client Error"))
	})
	c.recorded("/plain/-/plain-1.0.0.tgz", "/files/probe-1.0-py3-none-any.whl", "npm.example.org", "pypi.example.org")
}
