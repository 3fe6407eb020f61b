package sandboxtest

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// nodeTries are attempts from JavaScript, by what Node.js brings for them.
func nodeTries() []try {
	list := append(nodeProcessTries(), nodeFileTries()...)
	list = append(list, nodeNetworkTries()...)
	return append(append(list, nodeLimitTries()...), nodeLookTries()...)
}

// nodeProcessTries start a second program, by every function that does, or reach
// into other processes.
func nodeProcessTries() []try {
	no := denied("EPERM", "EACCES")
	// The pipes to it cannot be made either, which Node.js tells first.
	piped := denied("EPERM", "EACCES", "ENOTCONN")
	return []try{
		{name: "exec", js: `attempt(()=>util.promisify(cp.exec)('true'))`, want: piped, twin: here},
		{name: "execFile", costly: true, js: `attempt(()=>util.promisify(cp.execFile)(process.execPath,['-e','']))`, want: piped, twin: here},
		{name: "spawn", js: `attempt(()=>event(cp.spawn(process.execPath,['-e','']),'exit'))`, want: piped, twin: here},
		{name: "spawn that shares its output", costly: true, js: `attempt(()=>event(cp.spawn(process.execPath,['-e',''],{stdio:'inherit'}),'exit'))`, want: no, twin: here},
		{name: "spawn apart", costly: true, js: `attempt(()=>event(cp.spawn(process.execPath,['-e',''],{stdio:'ignore',detached:true}),'exit'))`, want: no, twin: here},
		{name: "spawn by a shell", costly: true, js: `attempt(()=>event(cp.spawn('true',{shell:true,stdio:'ignore'}),'exit'))`, want: no, twin: here},
		{name: "fork", js: `
fs.writeFileSync('child.js','');
attempt(()=>event(cp.fork('./child.js'),'exit'))`, want: no, twin: here},
		{name: "execSync", js: `attempt(()=>cp.execSync('true'))`, want: no, twin: here},
		{name: "execFileSync", js: `attempt(()=>cp.execFileSync(process.execPath,['-e',''],{stdio:'ignore'}))`, want: no, twin: here},
		{name: "spawnSync", js: `attempt(()=>{const r=cp.spawnSync(process.execPath,['-e',''],{stdio:'ignore'});if(r.error)throw r.error})`, want: no, twin: here},
		{name: "spawn by a thread", js: `
const {Worker}=require('worker_threads');
attempt(()=>new Promise((y,n)=>new Worker("const r=require('child_process').spawnSync(process.execPath,['-e',''],{stdio:'ignore'});require('worker_threads').parentPort.postMessage(r.error?r.error.code:'')",{eval:true}).on('message',m=>m?n({code:m}):y()).on('error',n)))`, want: no, twin: here},
		{name: "cluster", js: `
const cluster=require('cluster');
if(cluster.isWorker)process.exit(0);
attempt(()=>event(cluster.fork(),'online'))`, want: no, twin: here},
		{name: "the binding of spawnSync", js: `
attempt(()=>fails(process.binding('spawn_sync').spawn({file:process.execPath,args:['node','-e',''],envPairs:[],stdio:[0,1,2].map(fd=>({type:'inherit',fd}))}).error))`, want: no, twin: here},
		{name: "a process out of another context", js: `
const p=require('vm').runInNewContext("this.constructor.constructor('return process')()");
attempt(()=>fails(p.binding('spawn_sync').spawn({file:p.execPath,args:['node','-e',''],envPairs:[],stdio:[0,1,2].map(fd=>({type:'inherit',fd}))}).error))`, want: no, twin: here},
		{name: "a binding of sockets", js: `
const {TCP,constants}=process.binding('tcp_wrap');
attempt(()=>fails(new TCP(constants.SERVER).bind('127.0.0.1',0)))`, want: no, twin: here},
		{name: "a linked binding", js: `
try{process._linkedBinding('spawn_sync');say('reached')}catch(e){say('nothing linked')}`, want: says("nothing linked"), twin: twin{none: "nothing is linked outside either"}},
		{name: "a library of its own", js: `
const dir=['/lib/x86_64-linux-gnu','/usr/lib/x86_64-linux-gnu','/lib64','/usr/lib64','/lib','/usr/lib'].find(d=>fs.existsSync(d+'/libm.so.6'));
fs.copyFileSync(dir+'/libm.so.6','own.node'); fs.chmodSync('own.node',0o755);
try{process.dlopen({exports:{}},fs.realpathSync('own.node'))}catch(e){say(/self-register/.test(e.message)?'reached':'not loaded '+e.message)}`, want: says("not loaded"), twin: here},
		{name: "a library of its own by require", costly: true, js: `
const dir=['/lib/x86_64-linux-gnu','/usr/lib/x86_64-linux-gnu','/lib64','/usr/lib64','/lib','/usr/lib'].find(d=>fs.existsSync(d+'/libm.so.6'));
fs.copyFileSync(dir+'/libm.so.6','own.node');
try{require(fs.realpathSync('own.node'))}catch(e){say(/self-register/.test(e.message)?'reached':'not loaded '+e.message)}`, want: says("not loaded"), twin: here},
		{name: "kill the init", js: `attempt(()=>process.kill(1,'SIGKILL'))`, want: denied("EPERM"), twin: twin{scratch: true, js: `attempt(()=>process.kill(1,0))`}},
		{name: "kill its parent", js: `attempt(()=>process.kill(process.ppid,inside?'SIGKILL':0))`, want: denied("EPERM"), twin: here},
		{name: "kill everybody", js: `attempt(()=>process.kill(-1,inside?'SIGKILL':0))`, want: denied("EPERM"), twin: here},
		{name: "debug the init", js: `attempt(()=>process._debugProcess(inside?1:process.pid))`, want: denied("EPERM"), twin: here},
		{name: "setuid", js: `attempt(()=>process.setuid(0))`, want: escape("setuid"), twin: byRoot},
		{name: "setgid", js: `attempt(()=>process.setgid(0))`, want: escape("setgid"), twin: byRoot},
		{name: "seteuid", costly: true, js: `attempt(()=>process.seteuid(0))`, want: escape("setresuid"), twin: byRoot},
		{name: "setegid", costly: true, js: `attempt(()=>process.setegid(0))`, want: escape("setresgid"), twin: byRoot},
		{name: "setuid to somebody", costly: true, js: `attempt(()=>process.setuid(65533))`, want: violation("setuid"), twin: byRoot},
		{name: "setgroups", js: `attempt(()=>process.setgroups([0]))`, want: violation("setgroups"), twin: byRoot},
		{name: "a better place in the queue", js: `attempt(()=>os.setPriority(0,inside?-5:1))`, want: denied("EPERM", "EACCES"), twin: here},
	}
}

// nodeFileTries reach for files outside the scratch.
func nodeFileTries() []try {
	list := []try{
		{name: "write beside the interpreter", js: `attempt(()=>fs.writeFileSync(inside?'/usr/bin/x':'x','x'))`, want: denied("EROFS", "EACCES"), twin: here},
		{name: "change its own code", js: `attempt(()=>fs.appendFileSync(__filename,'//'))`, want: denied("EROFS", "EACCES"), twin: here},
		{name: "remove the runtime", js: `
if(!inside)fs.mkdirSync('usr/bin',{recursive:true});
attempt(()=>fs.rmSync(inside?'/usr':'usr',{recursive:true}))`, want: denied("EROFS", "EACCES"), twin: here},
		{name: "let everybody write", js: `
if(!inside)fs.writeFileSync('f','');
attempt(()=>fs.chmodSync(inside?'/usr/bin/node':'f',0o777))`, want: denied("EROFS", "EPERM"), twin: here},
		{name: "give a file away", js: `
fs.writeFileSync('f','');
attempt(()=>fs.chownSync('f',0,0))`, want: denied("EPERM"), twin: byRoot},
		{name: "link the interpreter", js: `attempt(()=>fs.linkSync(inside?'/usr/bin/node':'main.js','n'))`, want: denied("EXDEV", "EPERM", "EACCES"), twin: here},
		{name: "read through a link", js: `
fs.symlinkSync('/etc/passwd','p');
attempt(()=>fs.readFileSync('p'))`, want: denied("ENOENT"), twin: here},
		{name: "climb", js: `attempt(()=>fs.readFileSync('../../../../../../../../etc/passwd'))`, want: denied("ENOENT"), twin: here},
		{name: "move out", js: `
fs.writeFileSync('f','');
attempt(()=>fs.renameSync('f',inside?'/usr/f':'g'))`, want: denied("EROFS", "EXDEV", "EACCES"), twin: here},
		{name: "leave the scratch", js: `attempt(()=>{process.chdir('/etc');fs.readFileSync('passwd')})`, want: denied("ENOENT"), twin: here},
		{name: "watch", js: `attempt(()=>fs.watch('/usr'))`, want: denied("ENOSYS"), twin: here},
		{name: "watch everything below", costly: true, js: `attempt(()=>fs.watch('.',{recursive:true},()=>{})&&fs.watch('.'))`, want: denied("ENOSYS"), twin: here},
		{name: "after natives were let in", js: `
require('v8').setFlagsFromString('--allow-natives-syntax');
new Function('return %HaveSameMap({},{})')();
attempt(()=>fs.readFileSync('/etc/passwd'))`, want: denied("ENOENT"), twin: here},
		{name: "after its flags were changed", js: `
require('v8').setFlagsFromString('--no-freeze-flags-after-init'); require('v8').setFlagsFromString('--expose-gc');
require('vm').runInNewContext('gc')();
attempt(()=>fs.readFileSync('/etc/passwd'))`, want: denied("ENOENT"), twin: here},
		{name: "with a clock of shared memory", js: `
const {Worker}=require('worker_threads'),b=new Int32Array(new SharedArrayBuffer(4));
new Worker("const b=require('worker_threads').workerData;for(;;)Atomics.add(b,0,1)",{eval:true,workerData:b});
attempt(()=>new Promise((y,n)=>{const t=setInterval(()=>{if(Atomics.load(b,0)<1000)return;clearInterval(t);try{y(fs.readFileSync('/proc/cpuinfo'))}catch(e){n(e)}},50)}))`, want: denied("ENOENT"), twin: here},
	}
	for _, p := range []string{"/proc/self/environ", "/proc/self/maps", "/proc/self/exe", "/proc/1/cmdline", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_seqnum", "/etc/resolv.conf", "/etc/passwd"} {
		list = append(list, try{name: "read " + p, js: `attempt(()=>fs.readFileSync('` + p + `'))`, want: denied("ENOENT"), twin: here})
	}
	for _, p := range []string{"/proc/self/mem", "/dev/zero", "/dev/full", "/dev/tty", "/dev/kmsg"} {
		w := here
		if p == "/dev/kmsg" {
			w = byRoot
		}
		list = append(list, try{name: "open " + p, js: `attempt(()=>fs.openSync('` + p + `','r+'))`, want: denied("ENOENT"), twin: w})
	}
	return append(list, try{name: "a file in shared memory", js: `
const f='/dev/shm/holdfast-suite-'+process.pid;
attempt(()=>{fs.writeFileSync(f,'');fs.unlinkSync(f)})`, want: denied("ENOENT", "EROFS"), twin: here})
}

// nodeNetworkTries reach for the network.
func nodeNetworkTries() []try {
	no := denied("EACCES")
	const server = `
const server=f=>new Promise(y=>{const s=net.createServer(f||(c=>c.end())).listen(0,'127.0.0.1',()=>y(s.address().port))});
`
	reaches := func(connect string) twin {
		return twin{js: server + `attempt(()=>new Promise(async y=>{const port=await server(c=>{c.destroy();y()});` + connect + `}))`}
	}
	return []try{
		{name: "connect", js: `attempt(()=>event(net.connect(9,'127.0.0.1'),'connect'))`, want: no, twin: twin{js: server + `attempt(async()=>event(net.connect(await server(),'127.0.0.1'),'connect'))`}},
		{name: "listen", js: `attempt(()=>event(net.createServer().listen(0,'127.0.0.1'),'listening'))`, want: no, twin: here},
		{name: "listen at a path", js: `attempt(()=>event(net.createServer().listen('./s'),'listening'))`, want: no, twin: here},
		{name: "listen at an abstract name", js: `attempt(()=>event(net.createServer().listen('\0holdfast-suite-'+process.pid),'listening'))`, want: no, twin: here},
		{name: "dgram", js: `attempt(()=>event(require('dgram').createSocket('udp4').bind(0,'127.0.0.1'),'listening'))`, want: no, twin: here},
		{name: "dgram over IPv6", js: `attempt(()=>event(require('dgram').createSocket('udp6').bind(0,'::'),'listening'))`, want: no, twin: here},
		{name: "tls", js: `attempt(()=>event(require('tls').connect(9,'127.0.0.1'),'secureConnect'))`, want: no, twin: reaches(`require('tls').connect(port,'127.0.0.1').on('error',()=>{})`)},
		{name: "http", js: `attempt(()=>event(require('http').get('http://127.0.0.1:9/'),'response'))`, want: no, twin: reaches(`require('http').get({port,host:'127.0.0.1'}).on('error',()=>{})`)},
		{name: "http2", js: `attempt(()=>event(require('http2').connect('http://127.0.0.1:9'),'connect'))`, want: no, twin: reaches(`require('http2').connect('http://127.0.0.1:'+port).on('error',()=>{})`)},
		{name: "fetch", js: `attempt(()=>fetch('http://127.0.0.1:8199/').catch(e=>{throw e.cause}))`, want: no, twin: reaches(`fetch('http://127.0.0.1:'+port).catch(()=>{})`)},
		{name: "a name by the system", js: `attempt(()=>require('dns').promises.lookup(inside?'example.com':'localhost'))`, want: denied("EAI_AGAIN", "ENOTFOUND"), twin: here},
		{name: "a name by its own question", js: `
const r=new (require('dns').promises.Resolver)({timeout:500,tries:1}); r.setServers(['127.0.0.1:53']);
attempt(()=>r.resolve4('example.com'))`, want: denied("ECONNREFUSED", "ETIMEOUT", "ESERVFAIL"), twin: twin{js: `
const d=require('dgram').createSocket('udp4').bind(0,'127.0.0.1',()=>{
  const r=new (require('dns').promises.Resolver)(); r.setServers(['127.0.0.1:'+d.address().port]); r.resolve4('example.com').catch(()=>{})});
attempt(()=>event(d,'message'))`}},
		{name: "the inspector", js: `
const i=require('inspector'); try{i.open(0,'127.0.0.1')}catch{}
say(i.url()?'reached':'no inspector'); process.exit(0)`, want: says("no inspector"), twin: here},
		{name: "the inspector by a signal", js: `
const i=require('inspector'); process.kill(process.pid,'SIGUSR1');
setTimeout(()=>{say(i.url()?'reached':'no inspector'); process.exit(0)},1500)`, want: says("no inspector"), twin: twin{js: `
require('inspector').open(0,'127.0.0.1'); say(require('inspector').url()?'reached':''); process.exit(0)`}},
	}
}

// nodeLimitTries take more than their share.
func nodeLimitTries() []try {
	stopped := ends(posture.OOM, posture.ReasonOOM, 137)
	oom := where(posture.WallMemory, stopped, shortNode(stopped))
	const held = `
say(inside?'held':'reached');process.exit(0)`
	cut := func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		if s.up(posture.WallPids) || s.up(posture.WallMemory) {
			never(t, res)
		}
	}
	return []try{
		{name: "memory of WebAssembly", js: `const m=new WebAssembly.Memory({initial:6400}); new Uint8Array(m.buffer).fill(1);` + held, want: oom, twin: here},
		{name: "memory of buffers", costly: true, js: `const keep=[]; for(let i=0;i<40;i++)keep.push(Buffer.alloc(10<<20,1));` + held, want: oom, twin: here},
		{name: "memory of the heap", costly: true, js: `const keep=[]; for(let i=0;i<50;i++)keep.push(new Array(1<<20).fill(i+.5));` + held, want: oom, twin: here},
		{name: "memory that threads share", costly: true, js: `const b=new SharedArrayBuffer(400<<20); new Uint8Array(b).fill(1);` + held, want: oom, twin: here},
		{name: "memory of strings", costly: true, js: `const keep=[]; for(let i=0;i<50;i++)keep.push(Buffer.alloc(8<<20,65+i%26).toString('latin1'));` + held, want: oom, twin: here},
		{name: "threads", costly: true, js: `
const {Worker}=require('worker_threads');
const up=()=>new Promise((y,n)=>{const w=new Worker('setInterval(()=>{},1e6)',{eval:true,resourceLimits:{maxOldGenerationSizeMb:8,stackSizeMb:1}});w.once('online',y);w.once('error',n);w.once('exit',n)});
attempt(async()=>{for(let i=0;i<70;i++)await up()})`, spec: memory(512), want: cut, twin: here},
		{name: "output without end", js: `
const b=Buffer.alloc(1<<20,'z');
for(let i=0;i<3||inside;i++)fs.writeSync(1,b)`, want: ends(posture.Completed, posture.ReasonOutput, 137), twin: twin{says: "zzzz"}},
		{name: "a file beyond its limit", js: `attempt(()=>fs.ftruncateSync(fs.openSync('f','w'),200<<20))`, want: denied("EFBIG"), twin: here},
		{name: "the scratch", js: `
const b=Buffer.alloc(1<<20);
attempt(()=>{for(let i=0;i<11;i++)for(let j=0;j<10;j++)fs.appendFileSync('f'+i,b)})`, spec: memory(512), want: denied("ENOSPC"), twin: here},
		{name: "descriptors", js: `attempt(()=>{for(let i=0;i<300;i++)fs.openSync('/dev/null')})`, want: denied("EMFILE"), twin: here},
		{name: "wait for nobody", js: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0)`, spec: soon(1200), want: ends(posture.Timeout, posture.ReasonWall, 137), twin: twin{js: `
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,50); say('reached')`}},
		{name: "hear every signal", js: `
for(const s of Object.keys(os.constants.signals))try{process.on(s,()=>{})}catch{}
for(;;);`, spec: soon(1200), want: ends(posture.Timeout, posture.ReasonWall, 137), twin: twin{none: "a loop never gets anywhere; that it ends is shown by the limit"}},
		{name: "kill itself", js: `process.kill(process.pid,'SIGKILL')`, want: ends(posture.Completed, posture.ReasonSignal, 137), twin: twin{ends: "signal: killed"}},
		{name: "abort", js: `process.abort()`, want: ends(posture.Completed, posture.ReasonSignal, 134), twin: twin{ends: "signal: aborted"}},
	}
}

// nodeLookTries look for what is not theirs to see.
func nodeLookTries() []try {
	return []try{
		{name: "its parent's environment", js: `
const own=['HOME','PATH','TMPDIR','UV_USE_IO_URING'];
say(Object.keys(process.env).every(k=>own.includes(k))?'nothing':'reached')`, want: says("nothing"), twin: here},
		{name: "descriptors that were left", js: `
let seen=false;
for(let i=3;i<256;i++)try{const s=fs.fstatSync(i);seen||=s.isDirectory()||s.isSocket()||s.isBlockDevice()||s.isFile()}catch{}
say(seen?'reached':'nothing')`, want: says("nothing"), twin: twin{js: `
const d=fs.openSync('.'); say(fs.fstatSync(d).isDirectory()?'reached':'')`}},
		{name: "interfaces", js: `attempt(()=>{if(!Object.keys(os.networkInterfaces()).length)throw 'all of them'})`, want: says("refused"), twin: here},
		{name: "the host's name", js: `say(os.hostname()==='sandbox_try'?'nothing':'reached')`, want: says("nothing"), twin: here},
		{name: "its user", js: `attempt(()=>os.userInfo())`, want: denied("ENOENT"), twin: here},
		{name: "memory and load", js: `
say(os.totalmem()===4*2**30&&os.freemem()===4*2**30&&os.loadavg().every(n=>n===0)?'nothing':'reached')`, want: says("nothing"), twin: here},
		{name: "how full the disk is", js: `
const s=fs.statfsSync('/'); say(s.blocks*s.bsize===100*2**20?'nothing':'reached')`, want: says("nothing"), twin: here},
		{name: "a report of itself", js: `
const r=process.report.getReport();
const own=['HOME','PATH','TMPDIR','UV_USE_IO_URING'];
say(Object.keys(r.environmentVariables).every(k=>own.includes(k))&&!(r.header.networkInterfaces||[]).length?'nothing':'reached')`, want: says("nothing"), twin: here},
	}
}

// shortNode is short for Node.js, which is told that there is no more by a
// RangeError, or dies of it by a signal.
func shortNode(stopped want) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		told := res.ExitCode == 1 && strings.Contains(string(res.Stderr), "RangeError") || res.Signal != 0 && strings.Contains(string(res.Stderr), "out of memory")
		if res.State == posture.Completed && told {
			never(t, res)
			return
		}
		stopped(t, s, res)
	}
}
