package sandboxtest

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// nodePrelude begins every program in JavaScript: what came of an attempt is one
// line, "reached" or "refused" and the error's name, and ends the program.
const nodePrelude = `'use strict';
const fs=require('fs'),os=require('os'),util=require('util'),cp=require('child_process'),net=require('net'),inside=fs.existsSync('/code');
const say=(...a)=>{fs.writeSync(1,a.join(' ')+'\n')};
const tell=e=>say('refused',(e&&e.info&&e.info.code)||(e&&e.code)||e);
const attempt=async f=>{try{await f();say('reached')}catch(e){tell(e)}process.exit(0)};
const event=(x,good)=>new Promise((y,n)=>{x.once(good,y);x.once('error',n)});
process.on('uncaughtException',e=>{tell(e);process.exit(0)});
const fails=r=>{if(r<0)throw {code:util.getSystemErrorName(r)}};
`

// node runs a program in JavaScript. Where the machine has no Node.js the
// attempt is left out, and says so.
func (s *suite) node(t *testing.T, code string, change func(*sandbox.Spec)) *posture.Result {
	t.Helper()
	spec := sandbox.Spec{ID: "try", Language: "node", Code: []byte(nodePrelude + code), Timeout: s.within()}
	change(&spec)
	res, err := s.run(t, spec)
	if e := (*holdfast.Error)(nil); errors.As(err, &e) && e.Kind == holdfast.KindLanguage {
		if path, there := exec.LookPath("node"); there == nil {
			t.Fatalf("%s is here, and cannot be run: %v", path, err)
		}
		t.Skip("no Node.js here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}
