cd .gpu
sha256sum $(python3 -c 'import importlib.util as u,os;print(os.path.dirname(u.find_spec("torch").origin))')/lib/libc10_cuda.so
(time timeout 100 ./run.sh campaign --scale large --jobs 8 --cases 400 --seconds 80 --again 8 --out $OUT/c) > $OUT/campaign.log 2>&1 &
wait
tail -45 $OUT/campaign.log
(time timeout 200 ./run.sh tests --jobs 10 --out $OUT) 2>&1 | tail -40
(time timeout 60 ./run.sh sweep --mode placement --points 'cuda*@capture_*' --jobs 8 --out $OUT/s) > $OUT/sweep.log 2>&1
tail -30 $OUT/sweep.log
(time timeout 150 ./run.sh bench --only memory --out $OUT/b) 2>&1 | tail -120
rm -rf $OUT/c/repro $OUT/s/repro; rm -f $OUT/c/records-[2-9].jsonl; rm -rf $OUT/c/cases
