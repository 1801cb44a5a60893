package docs_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestLinks: each link of a Markdown file to something of ours leads to a file that is there, and to a heading in it.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages, links := 0, 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "dist"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		pages++
		for _, link := range linksOf(t, path) {
			to, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %s: %v", path, link, err)
				continue
			}
			if to.Scheme != "" {
				continue // somewhere else
			}
			links++
			file := path
			if to.Path != "" {
				file = filepath.Join(filepath.Dir(path), to.Path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere", path, link)
			} else if to.Fragment != "" && !slices.Contains(anchorsOf(t, file), to.Fragment) {
				t.Errorf("%s: %s: there is no such heading", path, link)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 || links < 200 {
		t.Errorf("only %d pages with %d links were found", pages, links)
	}
}

var (
	code = regexp.MustCompile("(?s)```.*?\n```|`[^`\n]*`")
	// A picture in a link is two of them.
	target = regexp.MustCompile(`\]\(([^()\s]+)\)|<(?:img|a)[^>]* (?:src|href)="([^"]+)"`)
)

func linksOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, match := range target.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
		links = append(links, match[1]+match[2])
	}
	return links
}

// anchorsOf returns what the headings of a page are called in addresses: in lower case, without punctuation, with hyphens for
// spaces, and numbered where two are the same.
func anchorsOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	seen := map[string]int{}
	inBlock := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			inBlock = !inBlock
		}
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if inBlock || !isHeading || !strings.HasPrefix(line, "#") {
			continue
		}
		title = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, anchor+"-"+strconv.Itoa(n))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}
