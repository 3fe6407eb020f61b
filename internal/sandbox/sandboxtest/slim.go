package sandboxtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unneeded are files of a Python root without which tests with few attempts run: most of
// the standard library, and what needs large libraries, with these.
var unneeded = regexp.MustCompile(strings.Join([]string{
	"^usr/share/",
	"^usr/lib/python3[.0-9]*/(" + strings.Join([]string{
		"asyncio|concurrent|curses|dbm|distutils|email|ensurepip|html|http|idlelib|lib2to3|logging|multiprocessing",
		"pydoc_data|sqlite3|test|tkinter|tomllib|turtledemo|unittest|urllib|venv|wsgiref|xml|xmlrpc|zoneinfo",
	}, "|") + ")/",
	"^usr/lib/python3[.0-9]*/(__pycache__/)?(" + strings.Join([]string{
		"_pydecimal|_pyio|aifc|argparse|bdb|calendar|cgi|cgitb|cmd|configparser|cProfile|csv|datetime|difflib",
		"doctest|fileinput|ftplib|gettext|imaplib|inspect|ipaddress|mailbox|mailcap|mimetypes|modulefinder|nntplib",
		"optparse|pdb|pickle|pickletools|plistlib|pprint|profile|pstats|pyclbr|pydoc|smtpd|smtplib|ssl|subprocess",
		"symtable|tarfile|telnetlib|timeit|trace|tracemalloc|turtle|uu|wave|xdrlib|zipfile",
	}, "|") + ")[.]",
	"/encodings/(__pycache__/)?(big|cp[0-9]|euc|gb|hz|iso|johab|koi8|kz|mac_|ptcp|shift|tis)",
	"/lib-dynload/(_asyncio|_codecs_|_curses|_dbm|_decimal|_hashlib|_multiprocessing|_sqlite3|_ssl|_test|_xxtest)",
	"/lib-dynload/(_zoneinfo|audioop|nis|readline|xx)",
	"/lib(com_err|crypto|db-|gssapi|k5crypto|keyutils|krb5|ncurses|nsl|readline|sqlite3|ssl|tinfo|tirpc)[^/]*$",
}, "|"))

// CopySlimRoot copies a Python root to the directory dst, without what tests with few
// attempts do not need: to copy, pack and unpack a whole root takes longer than they do.
// Times are kept, because Python compares them with those of its compiled files.
func CopySlimRoot(t testing.TB, dst, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || unneeded.MatchString(filepath.ToSlash(name)) {
			return err
		}
		to := filepath.Join(dst, name)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(link, to))
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(to, b, info.Mode().Perm()|0o200), os.Chtimes(to, info.ModTime(), info.ModTime()))
	})
	if err != nil {
		t.Fatal(err)
	}
}
