# Uses the standard library broadly: each line says what came of one part of it.
import sys,os,traceback
def t(name):
    def d(f):
        try: print(name, f())
        except BaseException as e: print(name,'->',type(e).__name__,e)
    return d
@t('builtins')
def _(): return ('exit' in dir(__builtins__), sys.flags.isolated, sys.path, os.getpid())
@t('json')
def _():
    import json,re,math,random,decimal,datetime,collections,itertools,functools,statistics,fractions,uuid,secrets,base64,struct,hashlib,hmac,string,textwrap
    return json.dumps({'a':[1,2]}),re.sub('a','b','aaa'),hashlib.sha256(b'x').hexdigest()[:6],len(str(uuid.uuid4())),secrets.token_hex(2)!=0
@t('sqlite')
def _():
    import sqlite3
    c=sqlite3.connect('/tmp/x.db');c.execute('create table a(b)');c.execute('insert into a values(1)');c.commit();r=c.execute('select * from a').fetchall();c.execute('pragma journal_mode=wal');c.execute('insert into a values(2)');c.commit();c.close();return r
@t('thread')
def _():
    import threading,queue,concurrent.futures as f
    with f.ThreadPoolExecutor(4) as p: return list(p.map(lambda x:x*x,range(5)))
@t('asyncio')
def _():
    import asyncio
    async def m():
        await asyncio.sleep(0.001); r=await asyncio.to_thread(lambda:5); return r+(await asyncio.gather(asyncio.sleep(0,1)))[0]
    return asyncio.run(m())
@t('asyncsub')
def _():
    import asyncio
    async def m():
        p=await asyncio.create_subprocess_exec('/bin/true'); return await p.wait()
    return asyncio.run(m())
@t('mp')
def _():
    import multiprocessing
    p=multiprocessing.Process(target=print);p.start();p.join();return 1
@t('mplock')
def _():
    import multiprocessing
    return multiprocessing.Lock()
@t('tempfile')
def _():
    import tempfile,shutil,zipfile,tarfile,gzip,bz2,lzma,pathlib
    with tempfile.TemporaryDirectory() as d:
        p=pathlib.Path(d)/'a';p.write_text('x'*100000);shutil.copy2(p,str(p)+'b');shutil.copytree(d,d+'c')
        with zipfile.ZipFile(d+'/z.zip','w') as z: z.write(p)
        with tarfile.open(d+'/t.tgz','w:gz') as z: z.add(p)
        with tarfile.open(d+'/t.tgz') as z: z.extractall(d+'/out')
        os.symlink('a',d+'/l');os.link(p,d+'/h');os.rename(d+'/h',d+'/i');os.chmod(p,0o600);os.utime(p);os.truncate(p,5)
        return sorted(os.listdir(d)),len(bz2.compress(b'a')),len(lzma.compress(b'a'))
@t('mmap')
def _():
    import mmap
    m=mmap.mmap(-1,4096);m[:3]=b'abc';f=open('/tmp/m','w+b');f.truncate(8192);n=mmap.mmap(f.fileno(),8192);n[0]=1;n.flush();return m[:3]
@t('subprocess')
def _():
    import subprocess
    return subprocess.run(['/bin/true'])
@t('system')
def _(): return os.system('true')
@t('fork')
def _(): return os.fork()
@t('socket')
def _():
    import socket
    return socket.create_connection(('8.8.8.8',53),2)
@t('dns')
def _():
    import socket
    return socket.getaddrinfo('example.com',80)
@t('urllib')
def _():
    import urllib.request
    return urllib.request.urlopen('http://example.com',timeout=2)
@t('signal')
def _():
    import signal,time
    got=[];signal.signal(signal.SIGALRM,lambda *a:got.append(1));signal.setitimer(signal.ITIMER_REAL,0.01);time.sleep(0.05);signal.raise_signal(signal.SIGALRM);os.kill(os.getpid(),signal.SIGALRM);return got
@t('ctypes')
def _():
    import ctypes
    l=ctypes.CDLL(None);F=ctypes.CFUNCTYPE(ctypes.c_int,ctypes.c_void_p,ctypes.c_void_p);cb=F(lambda a,b:0);a=(ctypes.c_int*2)(1,2);l.qsort(a,2,4,cb);return l.getpid()
@t('os')
def _():
    import pwd
    return os.cpu_count(),os.sched_getaffinity(0),os.uname().nodename,os.path.expanduser('~'),os.statvfs('/tmp').f_blocks
@t('platform')
def _():
    import platform
    return platform.platform()
@t('locale')
def _():
    import locale,time,calendar,zoneinfo
    return locale.setlocale(locale.LC_ALL,''),sys.stdout.encoding,sys.getfilesystemencoding(),time.tzname
@t('misc')
def _():
    import select,fcntl,resource,termios,curses,readline,ssl,xml.etree.ElementTree as E,unittest,logging,argparse,csv,html,email,http.server,pickle,copy,dataclasses,typing,inspect,dis,ast,tokenize,traceback,pprint,heapq,bisect,array,weakref,contextlib,abc,io,enum,types,operator,difflib,shelve
    return E.fromstring('<a><b/></a>').tag, resource.getrlimit(resource.RLIMIT_NOFILE), ssl.OPENSSL_VERSION[:9], inspect.getsource(logging.info)[:8]
@t('ssl')
def _():
    import ssl
    return ssl.create_default_context() is not None
@t('fds')
def _():
    r,w=os.pipe();os.write(w,b'a');return os.read(r,1),os.isatty(0), open('/dev/null','w').write('a'), len(open('/dev/urandom','rb').read(4)), len(os.urandom(4))
@t('etcpasswd')
def _(): return open('/etc/passwd')
@t('write')
def _(): return open('/x','w')
@t('doctest')
def _():
    import doctest, unittest
    class T(unittest.TestCase):
        def test(self): self.assertEqual(1,1)
    return unittest.TextTestRunner(stream=open('/dev/null','w')).run(unittest.TestLoader().loadTestsFromTestCase(T)).wasSuccessful()
@t('helper')
def _():
    open('/tmp/beside.py','w').write('x=3'); import beside
    return beside.x
@t('pyc')
def _():
    import glob
    return [p for p in glob.glob(sys.path[3]+'/**/*.py',recursive=True) if not os.path.exists(__import__('importlib.util').util.cache_from_source(p)) and 'bad' not in p][:5]
@t('zone')
def _():
    import zoneinfo
    return len(zoneinfo.available_timezones())>100 or not os.path.exists('/usr/share/zoneinfo')
@t('exit')
def _(): return callable(exit)
sys.exit(7)
