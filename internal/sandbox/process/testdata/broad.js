const fs=require('fs'),os=require('os'),crypto=require('crypto'),zlib=require('zlib');
fs.writeFileSync('/tmp/a.txt','hi');fs.copyFileSync('/tmp/a.txt','/tmp/b.txt');fs.mkdirSync('/tmp/d/e',{recursive:true});fs.rmSync('/tmp/d',{recursive:true});
console.log(crypto.createHash('sha256').update('x').digest('hex').slice(0,8),crypto.randomBytes(4).length,zlib.gzipSync('abc').length,os.cpus().length,os.totalmem()>0,os.hostname());
const {Worker}=require('worker_threads');
new Worker("require('worker_threads').parentPort.postMessage(1)",{eval:true}).on('message',m=>console.log('worker',m));
fs.promises.readFile('/tmp/a.txt','utf8').then(s=>console.log('p',s));
setTimeout(()=>console.log('t'),10);
crypto.scrypt('a','b',16,(e,k)=>console.log('scrypt',k.length));
try{require('child_process').execSync('id')}catch(e){console.log('cp',e.code||e.message)}
require('http').get('http://127.0.0.1:9/').on('error',e=>console.log('http',e.code));
require('dns').lookup('example.com',e=>console.log('dns',e&&e.code));
new WebAssembly.Module(Uint8Array.of(0,97,115,109,1,0,0,0));
process.on('exit',()=>console.log('bye'));
try{fs.watch('/tmp',()=>{}).close();console.log('watch ok')}catch(e){console.log('watch',e.code)}
