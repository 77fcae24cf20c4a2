"""Own code with nibabel and numpy earns what the commands earn: nobody asks who did the work."""

from __future__ import annotations

from typing import Any

from bat_medimaging.expert import act
from bat_medimaging.recipe import recipe_of

PLAN = """
import json, glob, nibabel, hashlib, os
import numpy as np
from scipy import ndimage
task = json.load(open('data/task.json'))
cards = {m: json.load(open(f'models/{m}/card.json')) for m in task['models']}
name = next(m for m in task['models'] if set(task['targets']) <= set(cards[m]['labels']))
card = cards[name]
"""
S1 = (
    PLAN
    + """
print('window', *card['window'], 'side', card['side'], 'axes', card['axes'], 'spacing', card['spacing'])
os.makedirs('plan', exist_ok=True)
text = '\\n'.join(f'## {s}\\nWhat is done in this stage, how it is checked, and what is written where it is due.'
                  for s in ('Plan', 'Setup', 'Validate', 'Infer', 'Submit'))
keys = f"model: {name}\\naxes: {card['axes']}\\nspacing: {card['spacing']}\\npilot: {task['cases'][0]}\\nconflict: none"
open('plan/plan.md', 'w').write(text + '\\n' + keys + '\\n')
"""
)
S2 = (
    PLAN
    + """
blob = open(f'models/{name}/weights.npz', 'rb').read()
sha = hashlib.sha256(blob).hexdigest()
print(sha, len(blob))
image = nibabel.load(f"data/cases/{task['cases'][0]}/ct.nii.gz")
print(image.shape, image.header.get_zooms(), ''.join(nibabel.aff2axcodes(image.affine)))
from phx import weights
os.makedirs('setup', exist_ok=True); os.makedirs('pipeline', exist_ok=True)
record = {'model': name, 'weights': 'weights.npz', 'sha256': sha, 'probe': weights.parse(blob).probe()}
json.dump(record, open('setup/environment.json', 'w'))
config = {'model': name, 'weights': 'weights.npz', **{k: card[k] for k in ('axes', 'spacing', 'window')}}
json.dump(config, open('pipeline/config.json', 'w'))
"""
)
MODEL = (
    PLAN
    + """
w = dict(np.load(f'models/{name}/weights.npz'))
def resample(v, sizes, steps, order=1):
    grids = [(np.arange(n) - (n - 1) / 2) * s + (m - 1) / 2 for n, s, m in zip(sizes, steps, v.shape)]
    return ndimage.map_coordinates(v, np.meshgrid(*grids, indexing='ij'), order=order, mode='nearest')
def infer(case):
    image = nibabel.load(f'data/cases/{case}/ct.nii.gz')
    o = nibabel.orientations
    there = o.ornt_transform(o.io_orientation(image.affine), o.axcodes2ornt(card['axes']))
    back = o.ornt_transform(o.axcodes2ornt(card['axes']), o.io_orientation(image.affine))
    v = o.apply_orientation(image.get_fdata(), there)
    z = o.apply_orientation(np.zeros(image.shape), there).shape
    zooms = [image.header.get_zooms()[int(i)] for i in np.argsort(there[:, 0])]
    sizes = [round(n * float(k) / card['spacing']) for n, k in zip(v.shape, zooms)]
    steps = [card['spacing'] / float(k) for k in zooms]
    low, high = card['window']
    x = np.clip((resample(v, sizes, steps) - low) / (high - low), 0, 1)
    smooth = x
    for axis in range(3):
        smooth = ndimage.correlate1d(smooth, w['kernel'], axis, mode='nearest')
    middle = ndimage.center_of_mass(x > w['body'])
    places = np.indices(x.shape)
    far = sum(((places[i] - middle[i] - w['centre'][i]) / w['radius'][i]) ** 2 for i in range(3))
    scores = resample(smooth * (far < 1), v.shape, [1 / s for s in steps])
    scores = o.apply_orientation(scores, back)
    return nibabel.Nifti1Image(sum((scores > c).astype('u1') for c in w['cuts']), image.affine)
def save(image, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    nibabel.save(image, path)
"""
)
S3 = (
    MODEL
    + """
case = task['cases'][0]
save(infer(case), f'validation/pilot/{case}/dseg.nii.gz')
mask = nibabel.load(f'validation/pilot/{case}/dseg.nii.gz').get_fdata()
a, b = int((mask == 1).sum()), int((mask == 2).sum())
print('voxels', a, b, 'share', round(b / (a + b), 2))
"""
)
S4 = (
    MODEL
    + """
for case in task['cases']:
    save(infer(case), f'outputs/{case}/dseg.nii.gz')
"""
)
S5 = (
    PLAN
    + """
import subprocess, phx
phx.validate()
json.dump({'done': len(task['cases']), 'failed': 0}, open('outputs/submission.json', 'w'))
"""
)


def test_own_code_earns_everything(helpers: Any, solve: Any) -> None:
    import sys
    from pathlib import Path

    from bat_medimaging import toolbelt

    from bat_core.hooks.actor import Act
    from bat_core.model.message import Message

    sys.path.insert(0, str(Path(toolbelt.__file__).parent))
    try:
        for task in helpers.tasks("segmentation", count=3, seed=12):
            acts = [act(f"S{place}", code) for place, code in enumerate((S1, S2, S3, S4, S5), 1)]
            words = f"done {len(recipe_of(task).cases)} failed 0"
            run = solve(task, [*acts, Act("S5", Message(role="assistant", content=words))])
            assert all(receipt.rc == 0 for receipt in run.runner.receipts)
            lost = {item: v.reason for item, v in helpers.judge(run.evidence).items() if not v.passed}
            assert not lost, (lost, run.lines)
    finally:
        sys.path.pop(0)
